//! The catalogue of reasons: one stable code for every situation a check can find, with its verdict, who acts, what it says of
//! the tie, and one plain sentence. Page, API, log, alert and docs all read it; nothing else words a situation.
//!
//! Codes, verdicts and actors are those of the corpus in `tests/cases/dns-cases.toml` (a test compares them); only what is about the
//! holder or the issuer is no DNS situation. The sentences are for people who do not run DNS: no word that `docs/reasons.md` does
//! not explain. That page is written from this catalogue (a test compares them). The tie is ours to say, because it may cost somebody their name: *gone* is
//! only what was positively seen to be absent or to lead elsewhere. What leads to us in part, what broke on our side, what could
//! not be looked at or validated, and everything about CAA or about an order is *silent*.

use serde::{Deserialize, Serialize};

use super::evidence::{Actor, Tie, Verdict};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $verdict:ident, $acts:ident, $tie:ident, $sentence:literal;)*) => {
        /// A reason code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(into = "&'static str", try_from = "String")]
        #[expect(missing_docs, reason = "the sentence of each row is its documentation")]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// Every reason, in the order of the catalogue.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            /// The stable code.
            pub const fn code(self) -> &'static str { match self { $(Reason::$name => $code,)* } }

            /// What it means for the check.
            pub const fn verdict(self) -> Verdict { match self { $(Reason::$name => Verdict::$verdict,)* } }

            /// Whose move it is.
            pub const fn acts(self) -> Actor { match self { $(Reason::$name => Actor::$acts,)* } }

            /// What it says of the tie between the name and its holder.
            pub const fn tie(self) -> Tie { match self { $(Reason::$name => Tie::$tie,)* } }

            /// One plain sentence, without values: those stand in the finding's advice.
            pub const fn sentence(self) -> &'static str { match self { $(Reason::$name => $sentence,)* } }
        }
    };
}

reasons! {
    TxtOk = "txt_ok", Pass, Nobody, Present, "The ownership record is in place and holds the right value.";
    TxtOkNormalised = "txt_ok_normalised", Pass, Nobody, Present, "The ownership record holds the right value, apart from quotes, spaces or capitals, which do not matter.";
    TxtMissing = "txt_missing", Wait, Tenant, Gone, "The ownership record is not there yet.";
    TxtPropagating = "txt_propagating", Wait, Nobody, Silent, "Some of the domain's name servers show the ownership record and others do not yet.";
    TxtStaleValue = "txt_stale_value", Fail, Tenant, Gone, "The ownership record still holds a value from an earlier attempt.";
    TxtTokenExpired = "txt_token_expired", Fail, Tenant, Silent, "The ownership record is right, but its value had become too old when it was seen.";
    TxtValueMismatch = "txt_value_mismatch", Fail, Tenant, Gone, "The ownership record holds a value that was not issued for this request.";
    TxtValueTruncated = "txt_value_truncated", Fail, Tenant, Gone, "The ownership record holds only the beginning of the value.";
    TxtZoneAppended = "txt_zone_appended", Fail, Tenant, Gone, "The ownership record was saved with the domain twice in its name.";
    TxtWrongName = "txt_wrong_name", Fail, Tenant, Gone, "The ownership record was saved under another name.";
    TxtCoveredByWildcardCname = "txt_covered_by_wildcard_cname", Wait, Tenant, Gone, "The ownership record is not there yet; a wildcard record answers in its place.";
    WrongRecordType = "wrong_record_type", Fail, Tenant, Gone, "A record of another type stands where ours has to be.";
    CnameOk = "cname_ok", Pass, Nobody, Present, "The name points to us.";
    CnameOkChain = "cname_ok_chain", Pass, Nobody, Present, "The name points to us by way of other names.";
    CnameOkWildcard = "cname_ok_wildcard", Pass, Tenant, Present, "The name points to us through a wildcard record; a record of its own is safer.";
    CnameMissing = "cname_missing", Wait, Tenant, Gone, "The name does not point anywhere yet.";
    LiveHostnameGone = "live_hostname_gone", Fail, Tenant, Gone, "The record that pointed the name to us has been removed.";
    CnamePropagating = "cname_propagating", Wait, Nobody, Silent, "The name points to us in some places and not yet in others.";
    CnamePointsElsewhere = "cname_points_elsewhere", Fail, Tenant, Gone, "The name points somewhere else.";
    CnameTargetTypo = "cname_target_typo", Fail, Tenant, Gone, "The name points to a misspelling of the target.";
    CnameTargetZoneAppended = "cname_target_zone_appended", Fail, Tenant, Gone, "The target was saved with your own domain at its end.";
    CnameZoneAppended = "cname_zone_appended", Fail, Tenant, Gone, "The record was saved with the domain twice in its name.";
    CnameTargetIsUrl = "cname_target_is_url", Fail, Tenant, Gone, "The target was entered as a web address instead of a bare name.";
    CnameLoop = "cname_loop", Fail, Tenant, Gone, "The records of the name lead round in a circle.";
    CnameChainTooLong = "cname_chain_too_long", Fail, Tenant, Silent, "The name leads through too many other names before it ends.";
    CnameConflict = "cname_conflict", Fail, Tenant, Silent, "The name has a CNAME record and other records side by side, which DNS does not allow.";
    CnameWrongTenantTarget = "cname_wrong_tenant_target", Fail, Tenant, Gone, "The name points to the target of a different account.";
    WildcardShadowed = "wildcard_shadowed", Fail, Tenant, Gone, "A wildcard record does not cover the name, because another record exists beneath it.";
    ProxiedByCdn = "proxied_by_cdn", Fail, Tenant, Silent, "A proxy stands in front of the name, so DNS does not show where it leads.";
    ProxiedReachable = "proxied_reachable", Pass, Nobody, Silent, "A proxy stands in front of the name, and a request through it reached us.";
    PlatformTargetBroken = "platform_target_broken", Unknown, Platform, Silent, "Your record is right, but our own name behind it does not answer; that is ours to solve.";
    AddressOk = "address_ok", Pass, Nobody, Present, "All addresses of the name are ours.";
    AddressMissing = "address_missing", Wait, Tenant, Gone, "The domain has no address yet.";
    AddressPointsElsewhere = "address_points_elsewhere", Fail, Tenant, Gone, "None of the name's addresses is ours.";
    AddressMixed = "address_mixed", Fail, Tenant, Silent, "Some of the name's addresses are ours and others are not.";
    AaaaPointsElsewhere = "aaaa_points_elsewhere", Fail, Tenant, Silent, "The IPv4 address of the name is ours, but its IPv6 address is not.";
    APointsElsewhere = "a_points_elsewhere", Fail, Tenant, Silent, "The IPv6 address of the name is ours, but its IPv4 address is not.";
    AddressNotPublic = "address_not_public", Fail, Tenant, Gone, "An address of the name cannot be reached from the internet.";
    AddressRetired = "address_retired", Fail, Tenant, Silent, "The name points to an address that we no longer use.";
    CnameAtApex = "cname_at_apex", Fail, Tenant, Silent, "A CNAME record stands at the top of the domain, where DNS does not allow one.";
    HttpsRrPointsElsewhere = "https_rr_points_elsewhere", Fail, Tenant, Silent, "The addresses of the name are ours, but an HTTPS record sends browsers elsewhere.";
    CaaAbsent = "caa_absent", Pass, Nobody, Silent, "No CAA record limits who may issue a certificate for the name.";
    CaaPermits = "caa_permits", Pass, Nobody, Silent, "The CAA records allow our certificate authority.";
    CaaNoRestriction = "caa_no_restriction", Pass, Nobody, Silent, "There are CAA records, but they do not limit this certificate.";
    CaaExcludesCa = "caa_excludes_ca", Fail, Tenant, Silent, "The CAA records allow other certificate authorities only.";
    CaaTargetExcludesCa = "caa_target_excludes_ca", Fail, Platform, Silent, "The CAA records of our own name do not allow our certificate authority; that is ours to solve.";
    CaaForbidsAll = "caa_forbids_all", Fail, Tenant, Silent, "The CAA records forbid every certificate.";
    CaaWildcardExcludesCa = "caa_wildcard_excludes_ca", Fail, Tenant, Silent, "For wildcard certificates, the CAA records allow other certificate authorities only.";
    CaaForbidsWildcard = "caa_forbids_wildcard", Fail, Tenant, Silent, "The CAA records forbid wildcard certificates.";
    CaaUnknownCritical = "caa_unknown_critical", Fail, Tenant, Silent, "A CAA record that our certificate authority does not understand is marked as binding, so it has to refuse.";
    CaaMalformed = "caa_malformed", Fail, Tenant, Silent, "A CAA record cannot be read, and what cannot be read counts as a ban.";
    CaaIssuerSpelling = "caa_issuer_spelling", Fail, Tenant, Silent, "A CAA record spells the name of our certificate authority with other capitals than it does itself.";
    CaaMethodNotAllowed = "caa_method_not_allowed", Fail, Tenant, Silent, "The CAA records allow our certificate authority, but not the way in which it checks the name.";
    CaaAccountMismatch = "caa_account_mismatch", Fail, Tenant, Silent, "The CAA records allow our certificate authority, but only for an account that is not ours.";
    CaaParamUnsatisfiable = "caa_param_unsatisfiable", Fail, Tenant, Silent, "A CAA record states the same condition twice, so nobody can meet it.";
    CaaTypeUnsupported = "caa_type_unsupported", Fail, DnsProvider, Silent, "The domain's name servers reject questions about CAA records.";
    CaaLookupFailed = "caa_lookup_failed", Unknown, DnsProvider, Silent, "The CAA records could not be read.";
    CaaTargetLookupFailed = "caa_target_lookup_failed", Unknown, Platform, Silent, "The CAA records of our own name could not be read; that is ours to solve.";
    CaaAnswerTruncated = "caa_answer_truncated", Unknown, DnsProvider, Silent, "The CAA records arrive incomplete.";
    CaaVantageDisagree = "caa_vantage_disagree", Wait, Nobody, Silent, "The CAA records look different from different places.";
    CaaObservationStale = "caa_observation_stale", Unknown, Platform, Silent, "The CAA records were read too long ago; we read them again.";
    DnsLookupFailed = "dns_lookup_failed", Unknown, DnsProvider, Silent, "The domain's name servers gave an error or no answer.";
    ResolverUnavailable = "resolver_unavailable", Unknown, Platform, Silent, "Our own DNS service does not answer at the moment; that is ours to solve.";
    ZoneLame = "zone_lame", Fail, Tenant, Silent, "The domain's name servers refuse to answer for it.";
    DomainNotRegistered = "domain_not_registered", Fail, Tenant, Gone, "The domain is not registered or has expired.";
    RecordsAtWrongProvider = "records_at_wrong_provider", Fail, Tenant, Gone, "The record exists, but at name servers that the domain does not use.";
    DnssecBogus = "dnssec_bogus", Fail, Tenant, Silent, "The domain's DNSSEC signatures are broken, so its answers are rejected.";
    OkOneServerDown = "ok_one_server_down", Pass, DnsProvider, Present, "The record is right, but one of the domain's name servers does not answer.";
    NameserverNotPublic = "nameserver_not_public", Fail, Tenant, Silent, "The domain uses a name server that cannot be reached from the internet.";
    DelegationOk = "delegation_ok", Pass, Nobody, Silent, "The challenge name points to us.";
    DelegationOkNs = "delegation_ok_ns", Pass, Nobody, Silent, "The challenge name is served by our own name servers.";
    DelegationMissing = "delegation_missing", Wait, Tenant, Silent, "The record at the challenge name is not there yet.";
    DelegationPointsElsewhere = "delegation_points_elsewhere", Fail, Tenant, Silent, "The challenge name leads somewhere else.";
    DelegationWrongTenant = "delegation_wrong_tenant", Fail, Tenant, Silent, "The challenge name points to the validation name of a different account.";
    DelegationBlockedByTxt = "delegation_blocked_by_txt", Fail, Tenant, Silent, "A TXT record left by another tool stands at the challenge name.";
    DelegationZoneAppended = "delegation_zone_appended", Fail, Tenant, Silent, "The record of the challenge name was saved with the domain twice in its name.";
    DelegationWrongName = "delegation_wrong_name", Fail, Tenant, Silent, "The record of the challenge name was saved under another name.";
    DelegationLabelTypo = "delegation_label_typo", Fail, Tenant, Silent, "The record of the challenge name was saved without its leading underscore.";
    DelegationCoveredByWildcard = "delegation_covered_by_wildcard", Wait, Tenant, Silent, "The record at the challenge name is not there yet; a wildcard record answers in its place.";
    ChallengeTxtNotVisible = "challenge_txt_not_visible", Wait, Platform, Silent, "Not all of our own name servers show the certificate authority's value yet; that is ours to solve.";
    ChallengeTxtIncomplete = "challenge_txt_incomplete", Wait, Platform, Silent, "One of the values that the certificate authority needs is still missing on our side.";
    ChallengeNoWildcard = "challenge_no_wildcard", Fail, Tenant, Silent, "A wildcard certificate needs the record at the challenge name.";
    ChallengeBlockedByProxy = "challenge_blocked_by_proxy", Fail, Tenant, Silent, "A proxy in front of the name keeps the certificate authority's check from reaching us.";
    PreflightOk = "preflight_ok", Pass, Nobody, Silent, "A request to the name over the internet reached us.";
    PreflightOff = "preflight_off", Pass, Nobody, Silent, "Whether requests to the name reach us is not tried before ordering.";
    PreflightNoAddress = "preflight_no_address", Wait, Nobody, Silent, "The name had no address when we tried a request to it.";
    PreflightUnreachable = "preflight_unreachable", Fail, Tenant, Silent, "A request to the name over the internet got no answer.";
    PreflightAnsweredByAnother = "preflight_answered_by_another", Fail, Tenant, Silent, "A request to the name was answered by a server that is not ours.";
    PreflightRedirected = "preflight_redirected", Fail, Tenant, Silent, "A request to the name was sent on to another place and did not reach us.";
    PreflightIpv6Elsewhere = "preflight_ipv6_elsewhere", Fail, Tenant, Silent, "Over IPv4 a request to the name reached us, but over IPv6 it did not.";
    PreflightMixed = "preflight_mixed", Fail, Tenant, Silent, "A request reached us at some of the name's addresses and not at others.";
    PreflightOwnOutage = "preflight_own_outage", Unknown, Platform, Silent, "Our own servers did not answer our test of the name; that is ours to solve.";
    HeldElsewhere = "held_elsewhere", Wait, Tenant, Silent, "Another account holds this name and still proves it; its ownership record must go before the name can move.";
    HandoverRuns = "handover_runs", Wait, Nobody, Silent, "The present holder's ownership record is gone and yours is there; the name moves once that has been seen for 72 hours.";
    HandoverDue = "handover_due", Pass, Nobody, Silent, "The former holder's ownership record has been gone for 72 hours; the name moves together with the new certificate.";
    NameContested = "name_contested", Fail, Tenant, Silent, "Your ownership record is gone and somebody else's is there; the name can move to them unless yours comes back.";
    IssuerNotReady = "issuer_not_ready", Unknown, Platform, Silent, "The certificate authority has not answered us yet; we ask again on our own, and nothing needs to change at your side.";
    Quarantined = "quarantined", Wait, Nobody, Silent, "The name was let go a short while ago and rests until its former owner's record is gone.";
}

impl Reason {
    /// The heading of `docs/reasons.md` that explains it.
    pub const fn help_anchor(self) -> &'static str {
        self.code()
    }
}

/// A text that is no reason code.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a reason code of this version")]
pub struct NoSuchReason(String);

impl TryFrom<String> for Reason {
    type Error = NoSuchReason;
    fn try_from(code: String) -> Result<Self, NoSuchReason> {
        Reason::ALL.iter().copied().find(|r| r.code() == code).ok_or(NoSuchReason(code))
    }
}

impl From<Reason> for &'static str {
    fn from(r: Reason) -> Self {
        r.code()
    }
}
