//! What looks at DNS cost on this machine: zones, their servers and resolvers on loopback, and looks at them as fast as they go.
//!
//! Real packets, the real observers behind the real gate (with caps that let everything through), the real judges; only the
//! network is missing. The servers keep each answer they made once, so that what is measured is the looking. Every look is
//! judged, and one that does not pass ends the run: a fast look that sees nothing is worth nothing. How to get it wrong: read
//! the figures of a debug build, or of a machine that does something else.

mod looks;
mod report;
mod server;
mod zones;

pub use looks::{BenchError, LooksSettings, looks};
pub use report::{LooksReport, Memory, Phase};
