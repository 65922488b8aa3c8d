//! The catalogue of reasons: one stable code for every situation a check can find, with its verdict, who acts, what it says of
//! the tie, and one plain sentence. Page, API, log, alert and docs all read it; nothing else words a situation.
//!
//! Codes, verdicts, actors and sentences are those of the corpus in `tests/cases/dns-cases.toml` (a test compares them); only what is
//! about the holder or the issuer is no DNS situation. The tie is ours to say, because it may cost somebody their name: *gone* is
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

            /// One plain sentence.
            pub const fn sentence(self) -> &'static str { match self { $(Reason::$name => $sentence,)* } }
        }
    };
}

reasons! {
    TxtOk = "txt_ok", Pass, Nobody, Present, "The current ownership value is present at the expected name.";
    TxtOkNormalised = "txt_ok_normalised", Pass, Nobody, Present, "The current value is present apart from quotes, surrounding spaces or letter case.";
    TxtMissing = "txt_missing", Wait, Tenant, Gone, "No TXT value with our prefix at the expected name yet.";
    TxtPropagating = "txt_propagating", Wait, Nobody, Silent, "Some authoritative servers have the current value and some do not yet.";
    TxtStaleValue = "txt_stale_value", Fail, Tenant, Gone, "Only a value that this request has since replaced is present.";
    TxtTokenExpired = "txt_token_expired", Fail, Tenant, Silent, "The value matches but its validity window has closed.";
    TxtValueMismatch = "txt_value_mismatch", Fail, Tenant, Gone, "A value with our prefix is present but was not issued for this request.";
    TxtValueTruncated = "txt_value_truncated", Fail, Tenant, Gone, "A strict beginning of the current value is present.";
    TxtZoneAppended = "txt_zone_appended", Fail, Tenant, Gone, "The record sits at the expected name with the domain's own name once more behind it.";
    TxtWrongName = "txt_wrong_name", Fail, Tenant, Gone, "The current value sits at another likely name (hostname or registered domain).";
    TxtCoveredByWildcardCname = "txt_covered_by_wildcard_cname", Wait, Tenant, Gone, "The expected name has no record of its own yet and a wildcard CNAME into the platform answers for it.";
    WrongRecordType = "wrong_record_type", Fail, Tenant, Gone, "The expected name carries a record of another type that blocks the right one.";
    CnameOk = "cname_ok", Pass, Nobody, Present, "The hostname is a CNAME to the target that was given.";
    CnameOkChain = "cname_ok_chain", Pass, Nobody, Present, "The hostname reaches the target that was given through other aliases.";
    CnameOkWildcard = "cname_ok_wildcard", Pass, Tenant, Present, "A wildcard CNAME to the target that was given covers the hostname.";
    CnameMissing = "cname_missing", Wait, Tenant, Gone, "The hostname has neither a CNAME nor an address yet.";
    LiveHostnameGone = "live_hostname_gone", Fail, Tenant, Gone, "A hostname that was live no longer exists at any of its authoritative servers.";
    CnamePropagating = "cname_propagating", Wait, Nobody, Silent, "Authoritative servers differ: some new, some old.";
    CnamePointsElsewhere = "cname_points_elsewhere", Fail, Tenant, Gone, "The alias chain ends at a name that is not ours.";
    CnameTargetTypo = "cname_target_typo", Fail, Tenant, Gone, "The CNAME points at a name that is one or two letters away from the target that was given.";
    CnameTargetZoneAppended = "cname_target_zone_appended", Fail, Tenant, Gone, "The CNAME points at the target that was given with the domain's own name once more behind it.";
    CnameZoneAppended = "cname_zone_appended", Fail, Tenant, Gone, "The CNAME sits at the hostname with the domain's own name once more behind it.";
    CnameTargetIsUrl = "cname_target_is_url", Fail, Tenant, Gone, "The CNAME points at a web address, with https:// or a path, instead of a name.";
    CnameLoop = "cname_loop", Fail, Tenant, Gone, "The aliases lead in a circle.";
    CnameChainTooLong = "cname_chain_too_long", Fail, Tenant, Silent, "The hostname leads through more than 10 aliases.";
    CnameConflict = "cname_conflict", Fail, Tenant, Silent, "A CNAME and other data are stored at one name.";
    CnameWrongTenantTarget = "cname_wrong_tenant_target", Fail, Tenant, Gone, "The CNAME points at the target of another customer, not at the one that was given.";
    WildcardShadowed = "wildcard_shadowed", Fail, Tenant, Gone, "A wildcard exists but another record beneath the hostname stops it from applying.";
    ProxiedByCdn = "proxied_by_cdn", Fail, Tenant, Silent, "Only addresses of a known proxy are visible.";
    PlatformTargetBroken = "platform_target_broken", Unknown, Platform, Silent, "The customer's record is right but our own target does not resolve or does not validate.";
    AddressOk = "address_ok", Pass, Nobody, Present, "All addresses are ours.";
    AddressMissing = "address_missing", Wait, Tenant, Gone, "The apex has no address yet.";
    AddressPointsElsewhere = "address_points_elsewhere", Fail, Tenant, Gone, "No address is ours.";
    AddressMixed = "address_mixed", Fail, Tenant, Silent, "Some addresses of one family are ours and some are not.";
    AaaaPointsElsewhere = "aaaa_points_elsewhere", Fail, Tenant, Silent, "IPv4 is ours and IPv6 is not.";
    APointsElsewhere = "a_points_elsewhere", Fail, Tenant, Silent, "IPv6 is ours and IPv4 is not.";
    AddressNotPublic = "address_not_public", Fail, Tenant, Gone, "An address is private or otherwise unreachable from the internet.";
    AddressRetired = "address_retired", Fail, Tenant, Silent, "An address is one the platform no longer uses.";
    CnameAtApex = "cname_at_apex", Fail, Tenant, Silent, "A literal CNAME is stored at a zone apex.";
    HttpsRrPointsElsewhere = "https_rr_points_elsewhere", Fail, Tenant, Silent, "Addresses are ours but an HTTPS record leads browsers elsewhere.";
    CaaAbsent = "caa_absent", Pass, Nobody, Silent, "No CAA record set anywhere from the name up to the top-level domain.";
    CaaPermits = "caa_permits", Pass, Nobody, Silent, "The CAA records that apply let our CA issue.";
    CaaNoRestriction = "caa_no_restriction", Pass, Nobody, Silent, "The CAA records that apply restrict nothing for this kind of certificate.";
    CaaExcludesCa = "caa_excludes_ca", Fail, Tenant, Silent, "The CAA records that apply name other CAs only.";
    CaaTargetExcludesCa = "caa_target_excludes_ca", Fail, Platform, Silent, "The CAA records of our own target do not let our CA issue.";
    CaaForbidsAll = "caa_forbids_all", Fail, Tenant, Silent, "The CAA records that apply forbid every CA.";
    CaaWildcardExcludesCa = "caa_wildcard_excludes_ca", Fail, Tenant, Silent, "Wildcard order: issuewild names other CAs only.";
    CaaForbidsWildcard = "caa_forbids_wildcard", Fail, Tenant, Silent, "Wildcard order: issuewild has only empty issuers.";
    CaaUnknownCritical = "caa_unknown_critical", Fail, Tenant, Silent, "The CAA records that apply have a critical tag that our CA does not know.";
    CaaMalformed = "caa_malformed", Fail, Tenant, Silent, "A CAA record has a value that our CA cannot read, so that it issues nothing.";
    CaaIssuerSpelling = "caa_issuer_spelling", Fail, Tenant, Silent, "The CA name differs from the CA's own spelling in letter case.";
    CaaMethodNotAllowed = "caa_method_not_allowed", Fail, Tenant, Silent, "The CAA record does not allow the way in which our CA checks the name (validationmethods).";
    CaaAccountMismatch = "caa_account_mismatch", Fail, Tenant, Silent, "The CAA record allows another account at our CA only (accounturi).";
    CaaParamUnsatisfiable = "caa_param_unsatisfiable", Fail, Tenant, Silent, "A parameter that may appear once appears twice in one record.";
    CaaTypeUnsupported = "caa_type_unsupported", Fail, DnsProvider, Silent, "The authoritative servers reject the CAA type.";
    CaaLookupFailed = "caa_lookup_failed", Unknown, DnsProvider, Silent, "An error hides whether a nearer CAA set exists.";
    CaaTargetLookupFailed = "caa_target_lookup_failed", Unknown, Platform, Silent, "An error at our own target hides whether a CAA set exists there.";
    CaaAnswerTruncated = "caa_answer_truncated", Unknown, DnsProvider, Silent, "The CAA answer arrives incomplete.";
    CaaVantageDisagree = "caa_vantage_disagree", Wait, Nobody, Silent, "Vantage points reach different CAA decisions.";
    CaaObservationStale = "caa_observation_stale", Unknown, Platform, Silent, "The last CAA observation is too old to order on.";
    DnsLookupFailed = "dns_lookup_failed", Unknown, DnsProvider, Silent, "A lookup ended in an error or without an answer.";
    ResolverUnavailable = "resolver_unavailable", Unknown, Platform, Silent, "Our own resolvers fail for control names too.";
    ZoneLame = "zone_lame", Fail, Tenant, Silent, "All delegated servers refuse or do not know the zone.";
    DomainNotRegistered = "domain_not_registered", Fail, Tenant, Gone, "The registry says that the domain does not exist.";
    RecordsAtWrongProvider = "records_at_wrong_provider", Fail, Tenant, Gone, "The record exists only at servers that the name is not delegated to.";
    DnssecBogus = "dnssec_bogus", Fail, Tenant, Silent, "Answers fail DNSSEC validation.";
    OkOneServerDown = "ok_one_server_down", Pass, DnsProvider, Present, "The record is right; at least one authoritative server is silent.";
    NameserverNotPublic = "nameserver_not_public", Fail, Tenant, Silent, "The zone is delegated to a name server with a private address.";
    DelegationOk = "delegation_ok", Pass, Nobody, Silent, "The challenge name is a CNAME to this tenant's validation name.";
    DelegationOkNs = "delegation_ok_ns", Pass, Nobody, Silent, "The challenge name is delegated to the platform's name servers.";
    DelegationMissing = "delegation_missing", Wait, Tenant, Silent, "No record at the challenge name yet.";
    DelegationPointsElsewhere = "delegation_points_elsewhere", Fail, Tenant, Silent, "The challenge name leads to a name that is not ours.";
    DelegationWrongTenant = "delegation_wrong_tenant", Fail, Tenant, Silent, "The challenge name leads to the validation name of another customer.";
    DelegationBlockedByTxt = "delegation_blocked_by_txt", Fail, Tenant, Silent, "A TXT record occupies the challenge name.";
    DelegationZoneAppended = "delegation_zone_appended", Fail, Tenant, Silent, "The CNAME sits at the challenge name followed by the zone once more.";
    DelegationWrongName = "delegation_wrong_name", Fail, Tenant, Silent, "The delegation sits under another name.";
    DelegationLabelTypo = "delegation_label_typo", Fail, Tenant, Silent, "The label lacks its underscore.";
    DelegationCoveredByWildcard = "delegation_covered_by_wildcard", Wait, Tenant, Silent, "The challenge name has no record of its own yet and a wildcard CNAME answers for it.";
    ChallengeTxtNotVisible = "challenge_txt_not_visible", Wait, Platform, Silent, "Not all platform name servers serve the challenge value yet.";
    ChallengeTxtIncomplete = "challenge_txt_incomplete", Wait, Platform, Silent, "Fewer challenge values are served than the order needs.";
    ChallengeNoWildcard = "challenge_no_wildcard", Fail, Tenant, Silent, "The chosen method cannot validate a wildcard name.";
    ChallengeBlockedByProxy = "challenge_blocked_by_proxy", Fail, Tenant, Silent, "A proxy ends TLS before the platform.";
    HeldElsewhere = "held_elsewhere", Wait, Tenant, Silent, "Another tenant holds this name and still proves it; that record must go before the name can move.";
    IssuerNotReady = "issuer_not_ready", Unknown, Platform, Silent, "The certificate authority has not answered us yet; we ask again on our own, and nothing needs to change at your side.";
    Quarantined = "quarantined", Wait, Nobody, Silent, "The name was let go a short while ago and rests until the former tenant's record is gone.";
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
