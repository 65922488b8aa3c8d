//! The sandbox's DNS: a [`ZoneStore`] served by UDP and TCP, once as the zones' own server, once as a recursive resolver.
//!
//! Each [`Sockets`] pair plays one role over the same world. The store is also the "pretend DNS provider": its lines are listed,
//! added and removed while the server runs, and the next answer shows it. There is no cache, so nothing needs to expire.
//! What always holds: a fault or view set in the store shows on the wire exactly as its words say; a packet that is no question
//! gets no answer. How to get it wrong: bind UDP and TCP on different ports — clients that get a cut answer come back by TCP
//! to the same number; [`Sockets::bind`] sees to that.

mod serve;
mod sockets;

pub use crate::dns::world::{EditError, Fault, How, View, Who, ZoneStore};
pub use serve::DnsServer;
pub use sockets::Sockets;
