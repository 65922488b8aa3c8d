//! Numbers for Prometheus: what each role counts, under names that are written down once.
//!
//! [`catalogue`] lists every metric with its kind, unit, labels and one sentence; [`EdgeMeters`] and [`ControlMeters`] register
//! exactly those and hand out typed ways to count, so that `prometheus-client` stays in this folder and `docs/metrics.md` is
//! written from the same list. Meters belong to whoever runs a role, not to the process: two roles in one process, or two
//! edges in one test, do not share them. **Always holds**: a label's values are a short list known here or, for routes, the
//! list of routes; never a hostname, a tenant, a path or anything else from outside. **To fake it**: `Default`. **To get it
//! wrong**: put an id into a label, or ask a database while an answer is encoded.

pub mod catalogue;

mod control;
mod edge;
mod labels;
mod register;

pub use control::{Census, ControlMeters, StepOutcome};
pub use edge::{EdgeGauges, EdgeMeters, Handshake, Listener, Protocol};
pub use register::{CONTENT_TYPE, reference};
