//! The integration tests: one binary, one module per topic.

mod acme_pebble;
mod api;
mod architecture;
mod claims;
mod cli;
mod crash;
mod dns_cases;
mod dns_fields;
mod dns_limits;
mod dns_more;
mod dns_reasons;
mod dns_server;
mod dns_views;
mod docs;
mod edge;
mod feed;
mod ledger;
mod pages;
mod pebble;
mod queue;
mod reach;
mod routine;
mod sandbox_ca;
mod services;

mod store_conformance;
mod support;
