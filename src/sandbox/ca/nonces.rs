//! Replay nonces: each is good for one request (RFC 8555 §6.5).

use std::collections::{HashSet, VecDeque};

/// The nonces given out and not yet used, a bounded number of them.
#[derive(Debug)]
pub struct Nonces {
    open: HashSet<String>,
    by_age: VecDeque<String>,
    kept: usize,
}

impl Nonces {
    /// Remembers at most `kept` unused nonces (at least one).
    pub fn keeping(kept: usize) -> Self {
        Nonces { open: HashSet::new(), by_age: VecDeque::new(), kept: kept.max(1) }
    }

    /// Takes a freshly drawn nonce into the book, forgetting the oldest when it is full.
    pub fn give_out(&mut self, fresh: String) {
        while self.by_age.len() >= self.kept {
            if let Some(oldest) = self.by_age.pop_front() {
                self.open.remove(&oldest);
            }
        }
        if self.open.insert(fresh.clone()) {
            self.by_age.push_back(fresh);
        }
    }

    /// Uses a nonce up; false when it was used before, forgotten or never given out.
    pub fn spend(&mut self, nonce: &str) -> bool {
        let known = self.open.remove(nonce);
        // Used nonces leave the queue only when they reach its front, so spending stays cheap.
        while self.by_age.front().is_some_and(|n| !self.open.contains(n)) {
            self.by_age.pop_front();
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_good_once_and_the_oldest_is_forgotten_first() {
        let mut nonces = Nonces::keeping(2);
        for n in ["a", "b", "c"] {
            nonces.give_out(n.to_owned());
        }
        assert!(!nonces.spend("a"), "forgotten: only two are kept");
        assert!(nonces.spend("c"));
        assert!(!nonces.spend("c"), "used before");
        assert!(nonces.spend("b"));
        assert!(!nonces.spend("never"));
        assert!(nonces.by_age.is_empty() && nonces.open.is_empty());
    }
}
