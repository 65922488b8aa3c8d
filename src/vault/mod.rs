//! Keys at rest and on the way: what is sealed, under what, and who can open it.
//!
//! **Owns** two trees that never meet. The *vault* ([`Vault`]) seals certificate keys, account keys and the feed's own keys in
//! the store under a [`MasterKey`] that never leaves the control plane. *Distribution* ([`distribution`]) seals certificate
//! keys for edges under a key that is wrapped for each edge's own X25519 key; an edge uses that file and [`signing`], never the
//! vault. **May import** `env` and `model`.
//!
//! **Always holds**: every sealing derives a fresh key from a random salt (HKDF-SHA256), so no nonce is ever used twice; what
//! is sealed is bound to its place (a [`Context`], or a label), so a blob moved to another row does not open; nothing here
//! prints key material, neither in `Debug` nor in an error.
//!
//! **To fake it**: do not. Sealing takes microseconds; a hand-driven [`crate::env::Env`] makes every byte repeatable.
//!
//! **To get it wrong**: seal under a context that is not unique to the row; keep an opened secret in a struct that derives
//! `Debug` through its bytes; reuse one context for two purposes; store a distribution key unsealed.

mod aead;
mod hex;
mod master_key;
mod sealing;

pub mod distribution;
pub mod request_signing;
pub mod signing;

pub use master_key::{MasterKey, MasterKeyError};
pub use sealing::{Context, NotSealed, Sealed, Vault, VaultError};
