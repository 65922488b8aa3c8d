//! What several topics share.

pub mod dns_world;
