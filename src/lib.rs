//! Nameplate: a domain of their own for every customer of a SaaS.
//!
//! The folders form layers and imports point down only (a test holds the code to this):
//! `cli` → `sandbox` → `roles` → `web jobs edge agent` → `app feed` → `store vault dns acme notify` → `config telemetry env` → `model`.
//! Start reading at [`model`]: what may happen to a domain is decided there, without I/O, clock or chance.
#![forbid(unsafe_code)]

pub mod acme;
pub mod app;
pub mod cli;
pub mod config;
pub mod dns;
pub mod edge;
pub mod env;
pub mod feed;
pub mod jobs;
pub mod model;
pub mod notify;
pub mod reach;
pub mod roles;
pub mod sandbox;
pub mod simulate;
pub mod store;
pub mod telemetry;
pub mod vault;
pub mod web;
