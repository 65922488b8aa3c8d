//! Who may go now: caps on how much of something happens in a second and at once, and lanes for those who wait.
//!
//! [`Traffic`] is arithmetic over two tables: a row for each thing that is capped (all looks, a zone, a tenant, a server), and
//! whoever waits. A request names every cap that it falls under and goes when all of them are open. Those who wait go by lane,
//! each lane with a guaranteed share of the turns; inside a lane, the tenant that was served longest ago goes first.
//!
//! What always holds: in any second at most [`Cap::per_second`] of a thing begin, and at most [`Cap::at_once`] are under way; a
//! row that is as good as new is forgotten, so the tables are as large as what happened in the last seconds. To fake it: hand
//! it moments of your own. How to get it wrong: forget to say [`Traffic::leave`], or look at the clock twice.

mod cap;
mod lanes;
#[cfg(test)]
mod tests;

pub use cap::Cap;
pub use lanes::{Entered, Request, Traffic};
