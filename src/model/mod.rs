//! The pure heart: values, states and decisions. No async, no I/O, no clock, no randomness.
//!
//! Everything here is a function of its arguments, so a year of life can be played in a second and a failure replayed
//! from its seed. Time comes in as a [`moment::Moment`], chance as bytes somebody else drew. Nothing in this folder may
//! import another folder of the crate, nor a crate that touches the outside world.

pub mod alert;
pub mod bulk;
pub mod bulk_plan;
pub mod checks;
pub mod claim;
pub mod compare;
pub mod conclude;
pub mod dispatch;
pub mod domain;
pub mod domain_connect;
pub mod email;
pub mod evidence;
pub mod feed;
pub mod feed_apply;
pub mod hook_url;
pub mod hostname;
pub mod id;
pub mod issuer;
pub mod label;
pub mod ledger;
pub mod letting_go;
pub mod limits;
pub mod look;
pub mod moment;
pub mod notice;
pub mod order;
pub mod outcome;
pub mod pace;
pub mod percent;
pub mod plan;
pub mod preflight;
pub mod providers;
pub mod reason;
pub mod records;
pub mod renewal;
pub mod retries;
pub mod routine;
pub mod search;
pub mod secret;
pub mod sentence;
pub mod serial;
pub mod slug;
pub mod standing;
pub mod succession;
pub mod tenant;
pub mod tie;
pub mod traffic;
pub mod vocabulary;
pub mod zone_file;
