//! Alerts: what somebody should know of, once, until it is over.
//!
//! - [`threshold`] says which share of a certificate's lifetime is left, and which threshold that crosses.
//! - [`cause`] says why a certificate was not renewed in time; what shares a cause is one alert for the operator, with a count.
//! - [`risk`] says whether what was last seen of a name would keep its certificate from being renewed.
//! - [`level`] turns a condition that is looked at again and again into one rise and one end.
//! - [`loops`] lists what goes round in a control plane, and after which silence that is missed.
//! - [`telling`] says whether an event about an alert is still worth telling to somebody.
//! - [`kinds`] lists what can be subscribed to.
//!
//! What always holds: an alert is told once for a domain, certificate and threshold; a tighter threshold takes the place of a
//! looser one; a certificate that was replaced has no alert; a risk is told once for a domain, check and cause. May import `model`. How to get it wrong: decide by whether a job
//! succeeded instead of by the certificate; count days instead of shares, which is too late for some lifetimes and noise for
//! others.

pub mod cause;
pub mod kinds;
pub mod level;
pub mod loops;
pub mod risk;
pub mod telling;
pub mod threshold;
