//! The template that DNS providers take in: which records an apply link may set, and nothing else.

use serde_json::{Value, json};

/// The variable that holds the changing part of the ownership value.
pub const PROOF: &str = "proof";
/// The variable that holds the tenant's label.
pub const TENANT: &str = "tenant";

/// What a template is made of.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields of the document, described in the specification")]
pub struct TemplateFacts<'a> {
    pub provider_id: &'a str,
    pub provider_name: &'a str,
    pub service_id: &'a str,
    pub service_name: &'a str,
    /// Where the public key is published.
    pub key_domain: &'a str,
    /// Where a browser is sent back to.
    pub redirect_host: &'a str,
    /// The label of the ownership record.
    pub label: &'a str,
    /// What every ownership value begins with.
    pub prefix: &'a str,
    /// Where a tenant's names lead: the one target of all, or the zone in which each tenant has its own.
    pub target: Target<'a>,
}

/// Where names lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// All to this one.
    Shared(&'a str),
    /// Each tenant's to its own label in this zone.
    PerTenant(&'a str),
}

/// The template. It is applied to a host beneath a zone, never to the zone itself, where no CNAME may stand.
pub fn template(facts: &TemplateFacts<'_>) -> Value {
    let target = match facts.target {
        Target::Shared(name) => name.to_owned(),
        Target::PerTenant(zone) => format!("%{TENANT}%.{zone}"),
    };
    let variables = match facts.target {
        Target::Shared(_) => format!("{PROOF}: 32 hexadecimal digits that prove the claim."),
        Target::PerTenant(_) => {
            format!(
                "{PROOF}: 32 hexadecimal digits that prove the claim. {TENANT}: the customer's label beneath the target zone."
            )
        }
    };
    json!({
        "providerId": facts.provider_id,
        "providerName": facts.provider_name,
        "serviceId": facts.service_id,
        "serviceName": facts.service_name,
        "version": 1,
        "description": "Proves that a name is the customer's and leads it to the service.",
        "variableDescription": variables,
        "syncPubKeyDomain": facts.key_domain,
        "syncRedirectDomain": facts.redirect_host,
        "hostRequired": true,
        "records": [
            {
                "type": "TXT",
                "groupId": "ownership",
                "host": facts.label,
                "data": format!("{}%{PROOF}%", facts.prefix),
                "ttl": 300,
                "txtConflictMatchingMode": "Prefix",
                "txtConflictMatchingPrefix": facts.prefix,
            },
            { "type": "CNAME", "groupId": "routing", "host": "@", "pointsTo": target, "ttl": 300 },
        ],
    })
}
