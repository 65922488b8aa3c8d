//! Domain Connect: a DNS provider's own page sets the records, after its customer agreed there
//! (`draft-ietf-dconn-domainconnect`, the synchronous flow).
//!
//! Pure. [`Prefix`] reads what the TXT record at `_domainconnect.<zone>` says, [`Settings`] what the provider's settings document
//! says, [`Offer`] is what is left of both once nothing in it can do harm, and [`apply`] makes the query that is signed. The
//! template that a provider takes in beforehand is made by [`template()`]; the public key is published as [`key_records()`] says.
//!
//! What always holds: zone and provider are strangers. What they say becomes at most a name to show and an https address made of
//! a host and a path that were read letter by letter; the host belongs to whoever answered for the zone, or is one that is known.
//! Whatever else they send is left out, and so is all of it when a part that matters is odd. How to get it wrong: take an address
//! from a settings document as it stands; follow it anywhere; believe the redirect that comes back, where only DNS tells.

pub mod apply;
mod key_records;
mod prefix;
mod settings;
mod template;

pub use key_records::{key_records, public_key};
pub use prefix::{Endpoint, Prefix, is_path};
pub use settings::{LARGEST, Offer, Settings, Unusable};
pub use template::{PROOF, Route, TENANT, Target, TemplateFacts, template};

/// The label at which a zone says who speaks Domain Connect for it.
pub const LABEL: &str = "_domainconnect";

/// What our two templates are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Services {
    /// The one for names beneath a zone.
    pub beneath: String,
    /// The one for the zone itself.
    pub zone: String,
}

/// So many of a zone's records are tried.
pub const MOST_PREFIXES: usize = 2;

/// Whether a text may stand for a provider, a service or a key in an address and in a file's name.
pub fn is_id(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    !text.is_empty() && text.len() <= 128 && text.bytes().all(plain) && !text.starts_with('.') && !text.contains("..")
}
