//! The integration tests: one binary, one module per topic.

mod acme_pebble;
