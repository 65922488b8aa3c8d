//! Observers that do not say the same, next to each other.

use crate::model::evidence::View;

/// The views, when at least two of those who said something said different things; else none. What is compared is given beside
/// each view, because the same thing has many spellings; none for an observer that said nothing.
pub fn side_by_side<K: PartialEq>(views: impl Iterator<Item = (Option<K>, View)>) -> Vec<View> {
    let (keys, views): (Vec<Option<K>>, Vec<View>) = views.unzip();
    let mut said = keys.into_iter().flatten();
    let first = said.next();
    if said.any(|k| first.as_ref() != Some(&k)) { views } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_differ_stand_side_by_side() {
        let views = |keys: &[Option<u8>]| {
            let view =
                |k: &Option<u8>| View { observer: String::new(), said: format!("{k:?}"), ttl: None, as_expected: false };
            side_by_side(keys.iter().map(|k| (*k, view(k)))).len()
        };
        assert_eq!(views(&[]), 0);
        assert_eq!(views(&[Some(1), Some(1), None]), 0, "silence contradicts nobody");
        assert_eq!(views(&[None, Some(1), Some(2)]), 3, "but is shown beside those who differ");
    }
}
