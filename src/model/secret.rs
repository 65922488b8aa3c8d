//! Bytes that must not be printed: private keys, account keys, tokens. Zeroed when dropped, compared in constant time.

use std::fmt;

use zeroize::Zeroizing;

/// A secret. It has no `Display`, no `Serialize`, and its `Debug` says nothing but that it is one.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes bytes into care.
    pub fn new(bytes: Vec<u8>) -> Self {
        Secret(Zeroizing::new(bytes))
    }

    /// The bytes. Every caller is a place to look at when a secret leaks, so callers are few.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as text, for secrets that are text.
    pub fn expose_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl From<String> for Secret {
    fn from(s: String) -> Self {
        Secret::new(s.into_bytes())
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(&self.0, &other.0).is_ok()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let s = Secret::from("hunter2".to_owned());
        assert_eq!(format!("{s:?} {:#?}", Some(&s)).matches("hunter2").count(), 0);
        assert_eq!(s, Secret::new(b"hunter2".to_vec()));
        assert_ne!(s, Secret::new(b"hunter3".to_vec()));
    }
}
