//! Moments as the outside reads them: RFC 3339 in UTC, to the second.

use serde::{Deserialize, Deserializer, Serializer, de::Error as _};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::model::moment::Moment;

pub(in crate::app) fn serialize<S: Serializer>(at: &Moment, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&at.rfc3339())
}

pub(in crate::app) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Moment, D::Error> {
    let text = String::deserialize(d)?;
    let at = OffsetDateTime::parse(&text, &Rfc3339).map_err(D::Error::custom)?;
    Ok(Moment::from_secs(at.unix_timestamp()))
}

/// The same for moments that may be missing.
pub(in crate::app) mod option {
    use super::{Deserialize, Deserializer, Moment, Serializer};

    #[derive(serde::Deserialize)]
    struct Present(#[serde(with = "super")] Moment);

    pub(crate) fn serialize<S: Serializer>(at: &Option<Moment>, s: S) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => super::serialize(at, s),
            None => s.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Moment>, D::Error> {
        Ok(Option::<Present>::deserialize(d)?.map(|present| present.0))
    }
}
