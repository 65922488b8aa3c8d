//! Which CA stands behind an issuer: made from what its row says, so that an issuer that was added, or changed, needs no restart.

use std::collections::HashMap;
use std::sync::Arc;

use super::AppError;
use crate::acme::Authority;
use crate::model::domain::Issuer;
use crate::store::issuers::IssuerRow;

/// Where a CA is found and how it is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaPlace<'a> {
    /// The issuer's name.
    pub name: &'a str,
    /// The ACME directory.
    pub directory: &'a str,
    /// Whom its server must chain to, in PEM; the system's roots where nothing is said.
    pub roots: Option<&'a str>,
    /// The certificate profile that is asked for.
    pub profile: Option<&'a str>,
}

impl<'a> CaPlace<'a> {
    pub(super) fn of(issuer: &'a Issuer) -> Self {
        CaPlace {
            name: &issuer.name,
            directory: &issuer.directory,
            roots: issuer.roots.as_deref(),
            profile: issuer.profile.as_deref(),
        }
    }

    /// Of an issuer's row.
    pub fn of_row(row: &'a IssuerRow) -> Self {
        CaPlace { name: &row.name, directory: &row.directory, roots: row.roots.as_deref(), profile: row.profile.as_deref() }
    }
}

/// Gives the CA of an issuer.
pub trait Authorities: Send + Sync {
    /// The CA at this place.
    fn of(&self, place: &CaPlace<'_>) -> Result<Arc<dyn Authority>, AppError>;
}

/// CAs by the issuer's name, for those who bring their own.
impl Authorities for HashMap<String, Arc<dyn Authority>> {
    fn of(&self, place: &CaPlace<'_>) -> Result<Arc<dyn Authority>, AppError> {
        self.get(place.name).cloned().ok_or_else(|| AppError::NoAuthority(place.name.to_owned()))
    }
}
