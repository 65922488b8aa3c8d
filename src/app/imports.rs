//! Importing the certificate of the platform's own hosts: one wildcard, or several certificates side by side, for all of
//! them; edges find the right one by name, so no route is rewritten and a new tenant's host works at once.

use serde_json::json;

use crate::acme::imported::{self, ImportedError};
use crate::env::Env;
use crate::mint;
use crate::model::feed_apply::covers;
use crate::model::id::{CertificateId, EventId};
use crate::model::secret::Secret;
use crate::store::imports::{self, ImportRow};
use crate::store::{Store, StoreError, outbox};
use crate::vault::{Context, Vault, VaultError};

/// Hosts that a refusal names.
const NAMED: usize = 5;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The files.
    #[error(transparent)]
    Files(#[from] ImportedError),
    /// None of its names is of the platform's zone.
    #[error("the certificate names {}, none of which is *.{suffix} or a host directly below {suffix}, where tenants' canonical hosts are", names.join(", "))]
    OtherZone {
        /// What it names.
        names: Vec<String>,
        /// The zone.
        suffix: String,
    },
    /// Hosts would lose their certificate.
    #[error("{count} hosts that are served now would be left without a certificate, {} among them: import one that names them too, or force it", some.join(", "))]
    LeavesOut {
        /// How many.
        count: usize,
        /// A few of them.
        some: Vec<String>,
    },
    /// The vault.
    #[error("the key could not be sealed")]
    Vault(#[from] VaultError),
    /// The store.
    #[error("the certificate could not be stored")]
    Store(#[from] StoreError),
}

/// What an import did.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The certificate as it is stored.
    pub certificate: ImportRow,
    /// Whether it was stored now; the same certificate again changes nothing.
    pub new: bool,
    /// Those that it replaced, which are destroyed.
    pub replaced: Vec<CertificateId>,
    /// Canonical hosts served with it or another import now.
    pub covered: usize,
    /// Canonical hosts that still have none.
    pub uncovered: usize,
    /// Whether it came without the certificate of its issuer.
    pub without_intermediate: bool,
}

/// The two files, and whether hosts may lose their certificate.
pub struct Files<'a> {
    /// The chain, PEM, leaf first.
    pub chain: &'a str,
    /// The key, PEM.
    pub key: &'a Secret,
    /// Go on although hosts that are served now would be left without a certificate.
    pub force: bool,
}

/// Checks, seals and stores a certificate, and tells the edges. It replaces those imports with which it shares a name.
pub async fn import(
    store: &Store,
    env: &Env,
    vault: &Vault,
    suffix: &str,
    files: Files<'_>,
    actor: &str,
) -> Result<Imported, ImportError> {
    let now = env.now();
    let checked = imported::check(files.chain, files.key, now)?;
    let in_zone = |name: &String| name.split_once('.').is_some_and(|(_, parent)| parent == suffix);
    if !checked.names.iter().any(in_zone) {
        return Err(ImportError::OtherZone { names: checked.names, suffix: suffix.to_owned() });
    }
    let certificate = ImportRow {
        id: mint!(env, CertificateId),
        names: checked.names,
        serial: checked.serial,
        fingerprint: checked.fingerprint,
        not_before: checked.not_before,
        not_after: checked.not_after,
        stored_at: now,
    };
    let sealed = vault.seal(env, &Context::new("certificate-key", certificate.id.as_str()), &checked.key)?;
    let mut tx = store.begin().await?;
    let before = imports::in_use(&mut tx).await?;
    let hosts = imports::canonical_hosts(&mut tx).await?;
    if let Some(same) = before.iter().find(|row| row.fingerprint == certificate.fingerprint) {
        let covered = hosts.iter().filter(|host| covered_by(&before, host)).count();
        let (new, replaced, uncovered) = (false, Vec::new(), hosts.len() - covered);
        let without_intermediate = checked.without_intermediate;
        return Ok(Imported { certificate: same.clone(), new, replaced, covered, uncovered, without_intermediate });
    }
    let (replaced, mut after): (Vec<ImportRow>, Vec<ImportRow>) =
        before.iter().cloned().partition(|row| row.names.iter().any(|name| certificate.names.contains(name)));
    after.push(certificate.clone());
    let left_out: Vec<&String> = hosts.iter().filter(|h| covered_by(&before, h) && !covered_by(&after, h)).collect();
    if !left_out.is_empty() && !files.force {
        let some = left_out.iter().take(NAMED).map(|host| (*host).clone()).collect();
        return Err(ImportError::LeavesOut { count: left_out.len(), some });
    }
    for stmt in imports::insert(&certificate, &checked.chain, sealed.as_bytes()) {
        tx.execute(stmt).await?;
    }
    let told = mint!(env, EventId).to_string();
    tx.execute(outbox::insert(&told, "certificate", certificate.id.as_str(), 1, now)).await?;
    for row in &replaced {
        tx.execute(imports::destroy(&row.id, now)).await?;
        // Numbered after the new one's, so that no edge lets go of the old before it has the new.
        let after = format!("{told}{}", row.id);
        tx.execute(outbox::insert(&after, "certificate", row.id.as_str(), 2, now)).await?;
    }
    let replaced: Vec<CertificateId> = replaced.into_iter().map(|row| row.id).collect();
    let detail = json!({
        "certificate": certificate.id, "names": certificate.names, "issuer": checked.issuer, "serial": certificate.serial,
        "not_after": certificate.not_after.rfc3339(), "replaced": replaced, "forced": files.force,
    });
    tx.execute(imports::event(mint!(env, EventId).as_str(), &detail, actor, now)).await?;
    tx.commit().await?;
    tracing::info!(
        certificate.id = %certificate.id, names = certificate.names.join(" "),
        not_after = certificate.not_after.rfc3339(), "a certificate for the platform's own hosts was imported"
    );
    let covered = hosts.iter().filter(|host| covered_by(&after, host)).count();
    let uncovered = hosts.len() - covered;
    let without_intermediate = checked.without_intermediate;
    Ok(Imported { certificate, new: true, replaced, covered, uncovered, without_intermediate })
}

fn covered_by(imports: &[ImportRow], host: &str) -> bool {
    imports.iter().any(|row| row.names.iter().any(|name| covers(name, host)))
}

/// An imported certificate, and how many canonical hosts it could serve.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The certificate.
    pub certificate: ImportRow,
    /// Canonical hosts under its names.
    pub hosts: usize,
}

/// The imported certificates in use, and how many canonical hosts none of them names.
pub async fn list(store: &Store) -> Result<(Vec<Listed>, usize), StoreError> {
    let mut tx = store.read().await?;
    let (rows, hosts) = (imports::in_use(&mut tx).await?, imports::canonical_hosts(&mut tx).await?);
    let uncovered = hosts.iter().filter(|host| !covered_by(&rows, host)).count();
    let listed = rows.into_iter().map(|certificate| {
        let hosts = hosts.iter().filter(|h| certificate.names.iter().any(|n| covers(n, h))).count();
        Listed { certificate, hosts }
    });
    Ok((listed.collect(), uncovered))
}
