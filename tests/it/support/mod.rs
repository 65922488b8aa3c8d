//! What the integration tests share.

pub mod dns_world;
pub mod feed_world;
pub mod manifest;
pub mod services;
pub mod visitor;
