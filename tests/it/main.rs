//! The one integration binary: a module a topic, support beside them.

mod dns_cases;
mod dns_fields;
mod support;
