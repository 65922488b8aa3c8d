//! The templates that DNS providers take in: which records an apply link may set, and nothing else. One is for names beneath a
//! zone, one for the zone itself, where no CNAME may stand.

use std::net::IpAddr;

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
    /// What leads names to us.
    pub route: Route<'a>,
}

/// Where names lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// All to this one.
    Shared(&'a str),
    /// Each tenant's to its own label in this zone.
    PerTenant(&'a str),
}

impl Target<'_> {
    fn pattern(self) -> String {
        match self {
            Target::Shared(name) => name.to_owned(),
            Target::PerTenant(zone) => format!("%{TENANT}%.{zone}"),
        }
    }
}

/// What leads names to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'a> {
    /// A CNAME, beneath a zone.
    Beneath(Target<'a>),
    /// Addresses, at the zone itself: every provider can set them.
    Addresses(&'a [IpAddr]),
    /// A name, at the zone itself: `APEXCNAME`, which a provider need not know (the specification's optional extensions). One that
    /// does not will not have taken the template in, so nothing is offered there.
    Alias(Target<'a>),
}

impl Route<'_> {
    fn tenants(self) -> bool {
        matches!(self, Route::Beneath(Target::PerTenant(_)) | Route::Alias(Target::PerTenant(_)))
    }

    fn records(self) -> Vec<Value> {
        let record = |kind: &str, points_to: String| json!({ "type": kind, "groupId": "routing", "host": "@", "pointsTo": points_to, "ttl": 300 });
        match self {
            Route::Beneath(target) => vec![record("CNAME", target.pattern())],
            Route::Alias(target) => vec![record("APEXCNAME", target.pattern())],
            Route::Addresses(all) => {
                all.iter().map(|a| record(if a.is_ipv4() { "A" } else { "AAAA" }, a.to_string())).collect()
            }
        }
    }
}

/// The template.
pub fn template(facts: &TemplateFacts<'_>) -> Value {
    let mut variables = format!("{PROOF}: 32 hexadecimal digits that prove the claim.");
    if facts.route.tenants() {
        variables.push_str(&format!(" {TENANT}: the customer's label beneath the target zone."));
    }
    let mut records = vec![json!({
        "type": "TXT",
        "groupId": "ownership",
        "host": facts.label,
        "data": format!("{}%{PROOF}%", facts.prefix),
        "ttl": 300,
        "txtConflictMatchingMode": "Prefix",
        "txtConflictMatchingPrefix": facts.prefix,
    })];
    records.extend(facts.route.records());
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
        "hostRequired": matches!(facts.route, Route::Beneath(_)),
        "records": records,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(route: Route<'_>) -> (bool, bool, Vec<(String, String)>) {
        let made = template(&TemplateFacts {
            provider_id: "app.example",
            provider_name: "App",
            service_id: "custom-domain",
            service_name: "Custom domain",
            key_domain: "app.example",
            redirect_host: "domains.example.com",
            label: "_nameplate-challenge",
            prefix: "nameplate-verify=",
            route,
        });
        let text = |record: &Value, key: &str| record[key].as_str().unwrap_or_default().to_owned();
        let records = made["records"].as_array().unwrap();
        assert_eq!(
            (text(&records[0], "type"), text(&records[0], "data")),
            ("TXT".into(), "nameplate-verify=%proof%".into())
        );
        let led = records[1..].iter().map(|r| (text(r, "type"), text(r, "pointsTo"))).collect();
        let variables = made["variableDescription"].as_str().unwrap();
        (made["hostRequired"].as_bool().unwrap(), variables.contains("tenant:"), led)
    }

    #[test]
    fn a_zone_itself_gets_no_cname() {
        let per_tenant = Target::PerTenant("app.example");
        let own = ("%tenant%.app.example".to_owned(), "edge.app.example".to_owned());
        assert_eq!(routes(Route::Beneath(per_tenant)), (true, true, vec![("CNAME".into(), own.0.clone())]));
        let addresses = ["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        let (a, aaaa) = (("A".into(), "192.0.2.1".into()), ("AAAA".into(), "2001:db8::1".into()));
        assert_eq!(routes(Route::Addresses(&addresses)), (false, false, vec![a, aaaa]));
        assert_eq!(routes(Route::Alias(per_tenant)), (false, true, vec![("APEXCNAME".into(), own.0)]));
        let shared = Target::Shared("edge.app.example");
        assert_eq!(routes(Route::Alias(shared)), (false, false, vec![("APEXCNAME".into(), own.1)]));
    }
}
