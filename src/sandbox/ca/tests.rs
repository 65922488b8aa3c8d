//! The protocol without sockets: the order state machine by hand, JWS against junk.

mod envelope;
mod orders;
