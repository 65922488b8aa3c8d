//! Where and when a fault happens.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::sandbox::ca::entry::Endpoint;

/// Where a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum At {
    /// At every request.
    Everywhere,
    /// At every request that carries a JWS.
    Signed,
    /// At one resource.
    Only(Endpoint),
}

impl At {
    /// Whether a request there is meant.
    pub fn covers(self, endpoint: Endpoint) -> bool {
        match self {
            At::Everywhere => true,
            At::Signed => endpoint.is_signed(),
            At::Only(only) => only == endpoint,
        }
    }
}

impl From<Endpoint> for At {
    fn from(only: Endpoint) -> Self {
        At::Only(only)
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            At::Everywhere => "everywhere",
            At::Signed => "signed",
            At::Only(endpoint) => endpoint.name(),
        })
    }
}

/// A text that names no place.
#[derive(Debug, thiserror::Error)]
#[error("{seen:?} is no place of this CA; expected everywhere, signed, or one of {}", Endpoint::ALL.map(Endpoint::name).join(", "))]
pub struct NoSuchPlace {
    seen: String,
}

impl FromStr for At {
    type Err = NoSuchPlace;

    fn from_str(text: &str) -> Result<Self, NoSuchPlace> {
        match text {
            "everywhere" => Ok(At::Everywhere),
            "signed" => Ok(At::Signed),
            _ => Endpoint::ALL
                .into_iter()
                .find(|e| e.name() == text)
                .map(At::Only)
                .ok_or_else(|| NoSuchPlace { seen: text.chars().take(80).collect() }),
        }
    }
}

impl TryFrom<String> for At {
    type Error = NoSuchPlace;

    fn try_from(text: String) -> Result<Self, NoSuchPlace> {
        text.parse()
    }
}

impl From<At> for String {
    fn from(at: At) -> Self {
        at.to_string()
    }
}

/// Which of the requests there, counted from when the fault was scripted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// The next so many.
    Next(u32),
    /// This one alone; 1 is the next.
    Nth(u32),
    /// All of them, until it is taken from the script.
    Always,
    /// This share of them in percent, as the seed has it.
    Chance(u8),
}

impl Default for When {
    fn default() -> Self {
        When::Next(1)
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            When::Next(1) => f.write_str("once"),
            When::Next(times) => write!(f, "{times} times"),
            When::Nth(which) => write!(f, "the request number {which}"),
            When::Always => f.write_str("always"),
            When::Chance(percent) => write!(f, "{percent} % of the time"),
        }
    }
}
