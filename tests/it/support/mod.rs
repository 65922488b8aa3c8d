//! What the integration tests share.

pub mod book;
pub mod browser;
pub mod cluster;
pub mod dns_ask;
pub mod dns_corpus;
pub mod dns_counted;
pub mod dns_real;
pub mod dns_world;
pub mod feed_world;
pub mod fleet_seed;
pub mod invariants;
pub mod live_origin;
pub mod manifest;
pub mod met;
pub mod probed;
pub mod processes;
pub mod renewals;
pub mod rig;
pub mod secrets;
pub mod seed;
pub mod services;
pub mod stores;
pub mod told;
pub mod visitor;
pub mod web;
pub mod wire_ca;
