//! A small DNS world in memory: zones as lines of text, editable at run time, answered as authority and as resolver.
//!
//! It serves two fakes alike: the scripted look-ups without sockets and the sandbox's real server. It keeps the rules that the
//! checks depend on: wildcards (RFC 4592), empty non-terminals, delegations that hide what lies beneath, DNAME, alias chains,
//! negative answers with their SOA. [`fault::Fault`] makes look-ups end badly, a view shows one observer something else.
//!
//! Deliberately lenient in one point: a CNAME beside other data is stored and served, because customers' servers do that too.
//! How to get it wrong: add a zone's records without [`ZoneStore::add_zone`] — a name above which no SOA stands belongs to no
//! zone, and no server answers for it.

pub mod fault;
pub mod line;
mod resolve;
mod store;
mod view;

pub use fault::{Fault, How};
pub use line::LineError;
pub use store::{EditError, Reply, Who, ZoneStore};
pub use view::View;
