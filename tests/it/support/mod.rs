//! What the integration tests share.

pub mod dns_ask;
pub mod dns_world;
pub mod manifest;
pub mod services;
