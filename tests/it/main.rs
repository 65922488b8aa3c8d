//! The integration tests: one binary, one module per topic.

mod pebble;
mod sandbox_ca;
