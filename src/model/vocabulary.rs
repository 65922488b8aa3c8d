//! Closed sets of words that the store keeps as text: one macro gives an enum its words, both ways.

/// A word that is not in the set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{seen:?} is not one of: {expected}")]
pub struct UnknownWord {
    /// What was read.
    pub seen: String,
    /// The words of the set.
    pub expected: String,
}

/// Declares an enum of words: `vocabulary! { /// Doc. Kind { /// Doc. First = "first", … } }`.
macro_rules! vocabulary {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant,)* }

        impl $name {
            /// Every word of the set.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The word.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::model::vocabulary::UnknownWord;
            fn from_str(s: &str) -> Result<Self, Self::Err> {
                match s {
                    $($word => Ok($name::$variant),)*
                    _ => Err($crate::model::vocabulary::UnknownWord {
                        seen: s.chars().take(40).collect(),
                        expected: [$($word,)*].join(", "),
                    }),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

pub(crate) use vocabulary;
