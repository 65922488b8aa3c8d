//! What can be subscribed to: the words of the event log that somebody outside acts on.

use crate::model::email::ContactKind;

/// Who hears of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The tenant whose domain it is, and the platform.
    Tenant,
    /// The platform alone.
    Platform,
}

/// A kind of event.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The word, as in the event log.
    pub word: &'static str,
    /// Who hears of it.
    pub heard: Heard,
    /// To which of a tenant's contacts it is written.
    pub mail: Option<ContactKind>,
    /// What it means.
    pub about: &'static str,
}

const fn tenant(word: &'static str, mail: Option<ContactKind>, about: &'static str) -> Kind {
    Kind { word, heard: Heard::Tenant, mail, about }
}

const fn platform(word: &'static str, about: &'static str) -> Kind {
    Kind { word, heard: Heard::Platform, mail: None, about }
}

const DOMAINS: Option<ContactKind> = Some(ContactKind::Domains);
const CERTIFICATES: Option<ContactKind> = Some(ContactKind::Certificates);

/// A look at the records saw something new.
pub const EVIDENCE_CHANGED: &str = "evidence_changed";
/// All there is, of every kind, those of later releases included.
pub const EVERYTHING: &str = "*";
/// A certificate crossed a threshold.
pub const CERTIFICATE_ENDING: &str = "certificate_ending";
/// It was replaced, or is not needed any more.
pub const CERTIFICATE_SAFE: &str = "certificate_safe";
/// What was last seen of a name would keep its certificate from being renewed.
pub const RENEWAL_AT_RISK: &str = "renewal_at_risk";
/// It would not any more.
pub const RENEWAL_SAFE: &str = "renewal_safe";
/// A certificate of a name that was let go of was revoked.
pub const CERTIFICATE_REVOKED: &str = "certificate_revoked";
/// A name that was let go of still leads here.
pub const NAME_DANGLES: &str = "name_dangles";
/// It does not any more.
pub const NAME_LET_GO: &str = "name_let_go";
/// A domain was removed.
pub const REMOVED: &str = "removed";
/// Something is wrong with the platform, or with many certificates for one cause.
pub const ALERT_RAISED: &str = "alert_raised";
/// It is over.
pub const ALERT_RESOLVED: &str = "alert_resolved";
/// Nothing is sent to a place any more.
pub const WEBHOOK_DISABLED: &str = "webhook_disabled";
/// A try that an operator or tenant asked for; sent to the place that is tried only.
pub const WEBHOOK_TEST: &str = "webhook_test";

/// The list.
pub const KINDS: &[Kind] = &[
    tenant("claimed", None, "A hostname was claimed."),
    tenant("proven", None, "Ownership, routing and permission passed; the claim holds the name."),
    tenant(EVIDENCE_CHANGED, None, "A look at the records saw something new."),
    tenant("expired", DOMAINS, "The records were not published in time."),
    tenant("order_opened", None, "An order waits for its turn."),
    tenant("order_placed", None, "The CA took an order."),
    tenant("order_failed", None, "The CA refused an order, or a validation failed."),
    tenant(
        "replaces_refused",
        None,
        "The CA did not take the certificate in use as one to be replaced; a plain order follows.",
    ),
    tenant("renewal_stopped", None, "A renewal under way ended: nothing ties the name to its tenant any more."),
    tenant(
        "reissue_ended",
        None,
        "A replacement out of turn was given up before its order was placed; the certificate in use stays.",
    ),
    tenant("certificate_stored", None, "A certificate was issued and stored."),
    tenant("active", DOMAINS, "Every counted edge serves the certificate: visitors are served."),
    tenant("renewed", None, "Every counted edge serves the new certificate; the one before it is retired."),
    tenant("public_name_ok", None, "A request through the public name met the stored certificate."),
    tenant("public_name_elsewhere", None, "A request through the public name met something else."),
    tenant("tie_held", None, "What ties the name to its tenant is in place again."),
    tenant("tie_weakened", DOMAINS, "Of what ties the name to its tenant, a part is gone."),
    tenant("tie_lost", DOMAINS, "Nothing ties the name to its tenant any more; it is renewed no longer."),
    tenant("proof_lost", DOMAINS, "The ownership record went before the first certificate came."),
    tenant("proved_elsewhere", DOMAINS, "Somebody else has published a record of their own for the name."),
    tenant("handover_began", DOMAINS, "The name goes to somebody else unless its record comes back."),
    tenant("handover_ended", DOMAINS, "The name stays."),
    tenant("handed_over", DOMAINS, "The name went to somebody else."),
    tenant(REMOVED, DOMAINS, "A domain was removed; its name is kept back for a while."),
    tenant("withdrawn", None, "A claim was removed before it was proven."),
    tenant("returned", DOMAINS, "A removal was undone."),
    tenant("released", None, "The time to undo a removal is over."),
    tenant("release_forced", DOMAINS, "An operator ended a release before its time."),
    tenant(CERTIFICATE_REVOKED, None, "A certificate of a name that was let go of was revoked at its CA."),
    tenant(
        NAME_DANGLES,
        DOMAINS,
        "The DNS of a name that was let go of still leads here; told once a week until its record is gone.",
    ),
    tenant(NAME_LET_GO, DOMAINS, "The DNS of such a name does not lead here any more."),
    tenant(CERTIFICATE_ENDING, CERTIFICATES, "A certificate in use has only a certain share of its lifetime left."),
    tenant(CERTIFICATE_SAFE, CERTIFICATES, "Such a certificate was replaced, or is not needed any more."),
    tenant(
        RENEWAL_AT_RISK,
        CERTIFICATES,
        "What was last seen of a live name would keep its certificate from being renewed; told with the day and what to do.",
    ),
    tenant(RENEWAL_SAFE, CERTIFICATES, "It would not any more, or the name was let go of."),
    tenant(WEBHOOK_DISABLED, None, "A place failed for days or said that it is gone; nothing is sent to it any more."),
    platform("tenant_added", "A tenant was added."),
    platform("tenant_removed", "A tenant was taken off board; what it had is let go of."),
    platform("reissue_began", "An operator asked for certificates to be replaced out of turn."),
    platform("reissue_finished", "All of them are replaced."),
    platform("reissue_given_up", "What was left of them is given up."),
    platform(ALERT_RAISED, "Something is wrong with the platform, or with many certificates for one cause."),
    platform(ALERT_RESOLVED, "It is over."),
];

/// What a tenant that left is told still, while a name of it rests: nothing else is its own any more.
const TOLD_AFTER_LEAVING: [&str; 3] = [REMOVED, NAME_DANGLES, NAME_LET_GO];

/// The words that a tenant which left is told still, each between commas.
pub fn told_after_leaving() -> String {
    format!(",{},", TOLD_AFTER_LEAVING.join(","))
}

/// What a caller asked for that cannot be subscribed to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KindsError {
    /// Nothing.
    #[error("name at least one kind of event, or \"*\" for all of them")]
    Nothing,
    /// An unknown word.
    #[error("{0:?} is no kind of event that can be subscribed to; the API's description lists them")]
    Unknown(String),
    /// A kind of the platform's.
    #[error("{0} is told to operators alone")]
    Operators(&'static str),
}

/// The kinds asked for, sorted, each once; `*` alone where it is among them.
pub fn subscribed(asked: &[String], operator: bool) -> Result<Vec<String>, KindsError> {
    let mut out = Vec::new();
    for word in asked {
        if word == EVERYTHING {
            out.push(EVERYTHING);
            continue;
        }
        let known = KINDS.iter().find(|k| k.word == word);
        let kind = known.ok_or_else(|| KindsError::Unknown(word.chars().take(60).collect()))?;
        if kind.heard == Heard::Platform && !operator {
            return Err(KindsError::Operators(kind.word));
        }
        out.push(kind.word);
    }
    out.sort_unstable();
    out.dedup();
    if out.contains(&EVERYTHING) {
        out = vec![EVERYTHING];
    }
    if out.is_empty() { Err(KindsError::Nothing) } else { Ok(out.into_iter().map(str::to_owned).collect()) }
}

/// Whether a subscription to these kinds hears of what `ending` is the end of; of a kind that ends nothing it does.
pub fn hears_beginning_of(subscribed: &[String], ending: &str) -> bool {
    let beginning = match ending {
        CERTIFICATE_SAFE => CERTIFICATE_ENDING,
        RENEWAL_SAFE => RENEWAL_AT_RISK,
        ALERT_RESOLVED => ALERT_RAISED,
        _ => return true,
    };
    subscribed.iter().any(|word| word == EVERYTHING || word == beginning)
}

/// Whether events of this kind tell that an alert begins, or is over.
pub fn is_of_alert(kind: &str) -> bool {
    matches!(kind, ALERT_RAISED | ALERT_RESOLVED | CERTIFICATE_ENDING | CERTIFICATE_SAFE | RENEWAL_AT_RISK | RENEWAL_SAFE)
}

/// The words that are written to contacts of this kind, each between commas.
pub fn mailed(kind: ContactKind) -> String {
    let words: Vec<&str> = KINDS.iter().filter(|k| k.mail == Some(kind)).map(|k| k.word).collect();
    format!(",{},", words.join(","))
}

/// The kinds of alerts: of a name, of what many names share, and of the platform.
pub const ALERTS: &[&str] = &[
    "certificate_ending",
    "certificates_ending",
    "renewal_at_risk",
    "renewals_at_risk",
    "workers_stopped",
    "loop_silent",
    "work_overdue",
    "edges_missing",
    "issuer_unwell",
    "challenge_type_missing",
    "clock_differs",
    "webhook_disabled",
    "webhook_unusable",
    "mail_late",
    "mail_given_up",
    "names_left_behind",
    "edge_serves_another",
    "resolvers_silent",
];

/// Those that operators are told of, and not the tenants of a name.
pub fn of_operators() -> impl Iterator<Item = &'static str> {
    ALERTS.iter().copied().filter(|kind| ![CERTIFICATE_ENDING, RENEWAL_AT_RISK].contains(kind))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn asked(words: &[&str]) -> Vec<String> {
        words.iter().map(|w| (*w).to_owned()).collect()
    }

    #[test]
    fn words_are_unique_and_plain() {
        let words: BTreeSet<&str> = KINDS.iter().map(|k| k.word).collect();
        assert_eq!(words.len(), KINDS.len());
        let plain = |w: &&str| w.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        assert!(words.iter().all(plain));
        assert!(KINDS.iter().all(|k| k.about.ends_with('.')));
    }

    #[test]
    fn the_page_lists_exactly_these_kinds() {
        let page = include_str!("../../../docs/alerts.md");
        let (_, table) = page.split_once("|---|---|---|---|\n").unwrap();
        let (_, table) = table.split_once("|---|---|---|---|\n").unwrap_or(("", table));
        let row = |k: &Kind| {
            let told = if k.heard == Heard::Tenant { "its tenant, the platform" } else { "the platform" };
            let mail = k.mail.map_or(String::new(), |kind| format!("`{kind}`"));
            format!("| `{}` | {told} | {mail} | {} |", k.word, k.about)
        };
        let rows: Vec<String> = KINDS.iter().map(row).collect();
        assert_eq!(table.trim_end(), rows.join("\n"));
    }

    #[test]
    fn subscriptions_are_read_strictly() {
        assert_eq!(subscribed(&asked(&["removed", "active", "removed"]), false), Ok(asked(&["active", "removed"])));
        assert_eq!(subscribed(&asked(&["active", "*"]), false), Ok(asked(&["*"])));
        assert_eq!(subscribed(&[], true), Err(KindsError::Nothing));
        assert_eq!(subscribed(&asked(&["Active"]), true), Err(KindsError::Unknown("Active".into())));
        assert_eq!(subscribed(&asked(&[ALERT_RAISED]), false), Err(KindsError::Operators(ALERT_RAISED)));
        assert_eq!(subscribed(&asked(&[ALERT_RAISED]), true), Ok(asked(&[ALERT_RAISED])));
        assert!(subscribed(&asked(&["active\"", "%", ""]), true).is_err());
    }

    #[test]
    fn ends_have_their_beginnings() {
        assert!(hears_beginning_of(&asked(&["*"]), CERTIFICATE_SAFE));
        assert!(hears_beginning_of(&asked(&[CERTIFICATE_ENDING, CERTIFICATE_SAFE]), CERTIFICATE_SAFE));
        assert!(!hears_beginning_of(&asked(&[CERTIFICATE_SAFE, ALERT_RAISED]), CERTIFICATE_SAFE));
        assert!(!hears_beginning_of(&asked(&[ALERT_RESOLVED]), ALERT_RESOLVED));
        assert!(hears_beginning_of(&asked(&[RENEWAL_AT_RISK]), RENEWAL_SAFE));
        assert!(!hears_beginning_of(&asked(&[CERTIFICATE_ENDING]), RENEWAL_SAFE));
        assert!(hears_beginning_of(&asked(&["active"]), "active"));
    }

    #[test]
    fn what_is_mailed_stands_between_commas() {
        assert_eq!(mailed(ContactKind::Certificates), ",certificate_ending,certificate_safe,renewal_at_risk,renewal_safe,");
        assert!(mailed(ContactKind::Domains).contains(",tie_lost,"));
        assert_eq!(told_after_leaving(), ",removed,name_dangles,name_let_go,");
        // Whoever left is told by mail and webhook alike.
        let known =
            |word: &&'static str| KINDS.iter().any(|k| k.word == *word && k.heard == Heard::Tenant && k.mail == DOMAINS);
        assert!(TOLD_AFTER_LEAVING.iter().all(known));
    }
}
