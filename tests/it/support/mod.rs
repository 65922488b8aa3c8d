//! What the integration tests share.

pub mod manifest;
pub mod services;
