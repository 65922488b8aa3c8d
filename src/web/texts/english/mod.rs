//! The list in English, a file for each group of pages.
//!
//! `key = "…"` is a text as it stands; `key() = "…"` one with markup; `key(value) = "…{value}…"` one with values. What operators
//! and developers read has a name space of its own, since the same word means more to them: `o::edge()`, `a::body(name)`.
//!
//! What always holds: a key stands in one list; a test reads all of them. How to fake it: there is no need. How to get it wrong:
//! a list that `every_text` does not name.

use super::said::Said;

macro_rules! texts {
    ($($key:ident $(($($value:ident),*))? = $text:literal;)*) => {
        $(texts!(@one $key $(($($value),*))? = $text);)*

        /// Every text with its key and the names of its values; none for one without markup.
        #[cfg(test)]
        pub(super) const ALL: &[super::Entry] =
            &[$((stringify!($key), $text, texts!(@names $(($($value),*))?)),)*];
    };
    (@one $key:ident = $text:literal) => {
        pub(in crate::web) const fn $key() -> &'static str {
            $text
        }
    };
    (@one $key:ident ($($value:ident),*) = $text:literal) => {
        pub(in crate::web) fn $key($($value: impl std::fmt::Display),*) -> Said {
            Said::new($text, vec![$((stringify!($value), $value.to_string())),*])
        }
    };
    (@names) => { None };
    (@names ($($value:ident),*)) => { Some(&[$(stringify!($value)),*]) };
}
pub(in crate::web) mod api;
mod around;
mod domain;
mod entry;
mod imports;
mod list;
pub(in crate::web) mod operator;
mod operator_domain;
mod records;

pub(in crate::web) use around::*;
pub(in crate::web) use domain::*;
pub(in crate::web) use entry::*;
pub(in crate::web) use imports::*;
pub(in crate::web) use list::*;
pub(in crate::web) use records::*;

/// A text with its key and the names of its values.
#[cfg(test)]
pub(super) type Entry = (&'static str, &'static str, Option<&'static [&'static str]>);

/// Every list, with the name space that its keys stand in.
#[cfg(test)]
pub(super) fn every_text() -> Vec<(&'static str, Entry)> {
    let shared = [around::ALL, domain::ALL, entry::ALL, imports::ALL, list::ALL, records::ALL].concat();
    let operators = [operator::ALL, operator_domain::ALL].concat();
    let of = |space: &'static str, list: Vec<Entry>| list.into_iter().map(move |entry| (space, entry));
    of("t", shared).chain(of("o", operators)).chain(of("a", api::ALL.to_vec())).collect()
}
