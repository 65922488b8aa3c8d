//! An error with everything beneath it, on one line.

use std::error::Error;
use std::fmt;

/// Displays an error and its sources, joined by colons. Messages never repeat their source, so nothing is said twice.
pub struct Chain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut next = self.0.source();
        while let Some(source) = next {
            write!(f, ": {source}")?;
            next = source.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the order could not be placed")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn a_chain_names_every_cause_once() {
        let e = Outer(std::io::Error::other("connection refused"));
        assert_eq!(Chain(&e).to_string(), "the order could not be placed: connection refused");
    }
}
