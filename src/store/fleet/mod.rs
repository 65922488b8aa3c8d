//! What an operator sees of the whole fleet: counts, lists, the queue, edges. Nothing is written here.
//!
//! Every list goes by an index and is a page with a cursor; `tests/it/fleet_plans.rs` asks both databases how they would run
//! each statement of this folder and of `views`, and refuses one that reads a whole table. The counts in [`counts`] read a
//! covering index whole, which is why they are asked for by `app::fleet`'s snapshot and not by a page. How to get it wrong:
//! add a filter that no index begins with.

pub mod counts;
pub mod lists;
pub mod one;
pub mod queue;
