//! Logging and metrics: how they are set up, how an error chain is printed, what keeps outsiders from forging lines.
//!
//! One event is one line on standard error, whatever a host name, a header or a CA's problem document holds: control
//! characters are written as escapes at the very last step, below every formatter. An error's chain is printed once, where
//! it is handled, by [`Chain`]. May import `config`. To fake it: [`subscriber`] writes to any writer. How to get it wrong:
//! print an outer error and its source in two places, or log a value of type `Secret` by exposing it.

mod chain;
pub mod metrics;
mod one_line;
mod setup;

pub use chain::Chain;
pub use one_line::{OneLine, one_line};
pub use setup::{init, subscriber};
