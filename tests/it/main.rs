//! The integration tests: one binary, one module per topic.

mod acme_pebble;
mod architecture;
mod crash;
mod docs;
mod pebble;
mod queue;
mod reach;
mod sandbox_ca;
mod services;

mod dns_cases;
mod dns_fields;
mod store_conformance;
mod support;
