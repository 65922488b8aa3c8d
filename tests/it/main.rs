//! The integration tests: one binary, one module per topic.

mod acme_pebble;
mod architecture;
mod docs;
mod edge;
mod feed;
mod pebble;
mod sandbox_ca;
mod services;

mod dns_cases;
mod dns_fields;
mod support;
