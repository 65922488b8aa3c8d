//! The protocol without sockets: the order state machine by hand, JWS against junk.

mod allowance;
mod envelope;
mod orders;
