//! What version of a thing a caller counts on.

/// Any version, or one of those named: compared where the row is locked, in the transaction that changes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expect(Option<Vec<i64>>);

impl Expect {
    /// Whatever it is.
    pub const ANY: Expect = Expect(None);

    /// One of these.
    pub fn one_of(versions: Vec<i64>) -> Self {
        Expect(Some(versions))
    }

    /// Whether a thing of this version may be changed.
    pub fn allows(&self, version: i64) -> bool {
        self.0.as_ref().is_none_or(|versions| versions.contains(&version))
    }
}

#[cfg(test)]
mod tests {
    use super::Expect;

    #[test]
    fn nothing_named_is_anything_and_an_empty_list_is_nothing() {
        assert!(Expect::ANY.allows(7));
        assert!(Expect::one_of(vec![6, 7]).allows(7));
        assert!(!Expect::one_of(vec![6]).allows(7));
        assert!(!Expect::one_of(vec![]).allows(0));
    }
}
