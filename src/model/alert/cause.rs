//! Why a certificate was not renewed in time, as far as the rows tell. What shares a cause is one alert with a count.

use crate::model::evidence::Actor;
use crate::model::order::OrderState;
use crate::model::reason::Reason;
use crate::model::standing::Standing;
use crate::model::vocabulary::vocabulary;

vocabulary! {
    /// Whose trouble it is.
    Class {
        /// The tenant has a record to mend.
        TenantDns = "tenant_dns",
        /// The tenant's DNS provider does not answer as it should.
        DnsProvider = "dns_provider",
        /// The certificate authority.
        Ca = "ca",
        /// We ourselves.
        Platform = "platform",
    }
}

/// What is known of a domain whose certificate ends.
#[derive(Clone, Debug)]
pub struct Known<'a> {
    /// Where it stands.
    pub standing: Option<Standing>,
    /// State of its last order.
    pub order: Option<OrderState>,
    /// The issuer that it orders from.
    pub issuer: &'a str,
    /// Whether that issuer answers to nobody now, or its account cannot be used.
    pub issuer_unwell: bool,
    /// Whether an edge serves another certificate than the one it has.
    pub served_another: bool,
}

/// A cause: what it is, and the words under which everything that shares it is counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause {
    /// Whose trouble.
    pub class: Class,
    /// `ca/main`, `tenant_dns/txt_missing`: a stable word, of a short list.
    pub key: String,
}

impl Cause {
    fn new(class: Class, what: &str) -> Cause {
        Cause { class, key: format!("{class}/{what}") }
    }

    /// The cause of what a finding alone stands in the way of.
    pub fn found(reason: Reason) -> Cause {
        let class = match reason.acts() {
            Actor::Tenant => Class::TenantDns,
            Actor::DnsProvider => Class::DnsProvider,
            Actor::Ca => Class::Ca,
            Actor::Platform | Actor::Nobody => Class::Platform,
        };
        Cause::new(class, reason.code())
    }

    /// Reads a key as it is stored; what an unknown release wrote counts as ours.
    pub fn class_of(key: &str) -> Class {
        key.split('/').next().and_then(|word| word.parse().ok()).unwrap_or(Class::Platform)
    }

    /// What is behind the key, as a sentence about several certificates.
    pub fn sentence(key: &str) -> String {
        let what = key.split_once('/').map_or("", |(_, what)| what);
        let found = Standing::from_code(what).map_or(String::new(), |s| format!(" {}", s.sentence()));
        match Cause::class_of(key) {
            Class::TenantDns => format!("The tenants have a record to mend.{found}"),
            Class::DnsProvider => format!("DNS providers do not answer as they should.{found}"),
            Class::Ca => format!("The certificate authority behind issuer {what} does not issue."),
            Class::Platform if what == "edge" => "Edges serve another certificate than the one they were given.".to_owned(),
            Class::Platform if !found.is_empty() => found.trim_start().to_owned(),
            Class::Platform => "The renewal is late on our side.".to_owned(),
        }
    }
}

/// The cause. A finding that a person must act on comes before the CA's trouble: no CA could renew such a name.
pub fn cause_of(known: &Known<'_>) -> Cause {
    if known.served_another {
        return Cause::new(Class::Platform, "edge");
    }
    let found = known.standing.filter(|s| matches!(s, Standing::Found(_)));
    match found.map(|s| (s.acts(), s.code())) {
        Some((Actor::Tenant, code)) => Cause::new(Class::TenantDns, code),
        Some((Actor::DnsProvider, code)) => Cause::new(Class::DnsProvider, code),
        _ if known.issuer_unwell => Cause::new(Class::Ca, known.issuer),
        Some((Actor::Ca, _)) => Cause::new(Class::Ca, known.issuer),
        _ if known.order == Some(OrderState::Failed) => Cause::new(Class::Ca, known.issuer),
        _ => Cause::new(Class::Platform, "renewal"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(standing: Option<Standing>) -> Known<'static> {
        Known { standing, order: None, issuer: "main", issuer_unwell: false, served_another: false }
    }

    #[test]
    fn whoever_must_act_is_the_cause() {
        let key = |known: &Known<'_>| cause_of(known).key;
        assert_eq!(key(&known(Some(Standing::Found(Reason::TxtMissing)))), "tenant_dns/txt_missing");
        assert_eq!(key(&known(Some(Standing::Serving))), "platform/renewal");
        assert_eq!(key(&known(None)), "platform/renewal");
        assert_eq!(key(&Known { issuer_unwell: true, ..known(Some(Standing::Serving)) }), "ca/main");
        assert_eq!(key(&Known { order: Some(OrderState::Failed), ..known(None) }), "ca/main");
        let both = Known { issuer_unwell: true, ..known(Some(Standing::Found(Reason::TxtMissing))) };
        assert_eq!(key(&both), "tenant_dns/txt_missing");
        assert_eq!(key(&Known { served_another: true, ..both }), "platform/edge");
    }

    #[test]
    fn every_key_has_a_class_and_a_sentence() {
        for reason in Reason::ALL {
            let cause = cause_of(&known(Some(Standing::Found(*reason))));
            assert_eq!(Cause::class_of(&cause.key), cause.class);
            assert!(Cause::sentence(&cause.key).ends_with('.'), "{}", cause.key);
            let found = Cause::found(*reason);
            assert_eq!(Cause::class_of(&found.key), found.class);
            assert!(Cause::sentence(&found.key).ends_with('.'), "{}", found.key);
        }
        let ours = Cause::found(Reason::CaaTargetExcludesCa);
        assert_eq!(Cause::sentence(&ours.key), Reason::CaaTargetExcludesCa.sentence());
        assert_eq!(Cause::class_of("from another release"), Class::Platform);
    }
}
