//! The integration tests: one binary, one module per topic.

mod architecture;
mod docs;
mod services;
mod support;
