//! The provider's settings document, and the offer that is made of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::prefix::Endpoint;
use super::{is_id, is_path};

/// The largest settings document that is read.
pub const LARGEST: usize = 16 * 1024;
/// The longest name of a provider that is shown.
const LONGEST_NAME: usize = 80;
/// What of a settings document is understood here, and so may be called critical.
const UNDERSTOOD: [&str; 5] = ["providerId", "providerName", "providerDisplayName", "urlSyncUX", "urlAPI"];

/// Why a settings document is no offer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Not the document.
    #[error("the settings are no JSON object with the fields that a provider must give")]
    NotSettings,
    /// A part is missing or is not what it should be.
    #[error("the settings' {0} is missing or cannot be used")]
    Field(&'static str),
    /// Something in it must be understood and is not.
    #[error("the settings ask for something that is not understood here")]
    Critical,
    /// An address of somebody else.
    #[error(
        "the settings lead to {host}, which belongs neither to {asked}, who answered for the zone, nor to a known provider"
    )]
    Elsewhere {
        /// Where they lead.
        host: String,
        /// Who was asked.
        asked: String,
    },
}

/// What a provider says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its name for people.
    pub provider: String,
    /// Where its customers agree; none where it has no synchronous flow.
    pub sync: Option<Endpoint>,
    /// Where it is asked which templates it knows.
    pub api: Endpoint,
}

impl Settings {
    /// Reads the document that `asked` answered with. `known` are registered domains of providers whose pages live elsewhere than
    /// their settings.
    pub fn read(document: &[u8], asked: &Endpoint, known: &[String]) -> Result<Settings, Unusable> {
        let Ok(Value::Object(fields)) = serde_json::from_slice(document) else { return Err(Unusable::NotSettings) };
        let text = |key: &'static str| fields.get(key).and_then(Value::as_str);
        if !text("providerId").is_some_and(is_id) {
            return Err(Unusable::Field("providerId"));
        }
        let name = text("providerDisplayName").or(text("providerName")).map(str::trim);
        let name = name.filter(|name| is_name(name)).ok_or(Unusable::Field("providerName"))?;
        match fields.get("crit") {
            None => {}
            Some(Value::Array(names)) => {
                let fine = |n: &Value| n.as_str().is_some_and(|n| UNDERSTOOD.contains(&n) || !fields.contains_key(n));
                if !names.iter().all(fine) {
                    return Err(Unusable::Critical);
                }
            }
            Some(_) => return Err(Unusable::Critical),
        }
        let endpoint = |key: &'static str| -> Result<Option<Endpoint>, Unusable> {
            let Some(value) = fields.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
            let read = value.as_str().and_then(Endpoint::https).ok_or(Unusable::Field(key))?;
            let (theirs, own) = (read.registered_domain(), asked.registered_domain());
            if theirs != own && !known.contains(&theirs) {
                return Err(Unusable::Elsewhere { host: read.host, asked: asked.host.clone() });
            }
            Ok(Some(read))
        };
        let api = endpoint("urlAPI")?.ok_or(Unusable::Field("urlAPI"))?;
        Ok(Settings { provider: name.to_owned(), sync: endpoint("urlSyncUX")?, api })
    }

    /// What there is to offer, once the provider has said which of our templates it knows: nothing where it knows none.
    pub fn offer(self, services: Vec<String>) -> Option<Offer> {
        (!services.is_empty()).then_some(Offer { provider: self.provider, sync: self.sync?, services })
    }

    /// The path at which the provider says whether it knows a template.
    pub fn template_path(&self, provider_id: &str, service_id: &str) -> String {
        self.api.beneath(&format!("v2/domainTemplates/providers/{provider_id}/services/{service_id}"))
    }
}

/// Whether a name can be shown: a few letters that everybody sees.
fn is_name(name: &str) -> bool {
    let length = name.chars().count();
    (1..=LONGEST_NAME).contains(&length) && name.chars().all(|c| c == ' ' || crate::model::hostname::invisible(c).is_none())
}

/// A provider that sets our records when its customer agrees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its name for people.
    pub provider: String,
    /// Where its customers agree.
    pub sync: Endpoint,
    /// Our templates that it knows.
    pub services: Vec<String>,
}

impl Offer {
    /// The link for a signed query; `None` for a template that the provider does not know, and for parts that could not stand in
    /// an address.
    pub fn link(&self, provider_id: &str, service_id: &str, signed_query: &str) -> Option<String> {
        let known = self.services.iter().any(|known| known == service_id);
        let fits = known && is_id(provider_id) && is_id(service_id) && is_path(&self.sync.path);
        let path = format!("v2/domainTemplates/providers/{provider_id}/services/{service_id}/apply");
        fits.then(|| format!("https://{}{}?{signed_query}", self.sync.host, self.sync.beneath(&path)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn asked() -> Endpoint {
        Endpoint { host: "domainconnect.dns.example.com".into(), path: String::new() }
    }

    fn good() -> Value {
        json!({
            "providerId": "dns.example.com", "providerName": "Example DNS",
            "urlSyncUX": "https://connect.example.com/sync", "urlAPI": "https://api.example.com",
            "nameServers": ["ns1.example.com"], "width": 750,
        })
    }

    fn read(document: &Value) -> Result<Settings, Unusable> {
        Settings::read(document.to_string().as_bytes(), &asked(), &["known.org".to_owned()])
    }

    #[test]
    fn a_good_document_becomes_an_offer_with_a_link() {
        let settings = read(&good()).unwrap();
        assert_eq!(settings.template_path("app.example", "x"), "/v2/domainTemplates/providers/app.example/services/x");
        assert_eq!(settings.clone().offer(vec![]), None);
        let offer = settings.offer(vec!["custom-domain".to_owned()]).unwrap();
        assert_eq!(
            offer.link("app.example", "custom-domain", "a=b&sig=c&key=d").unwrap(),
            "https://connect.example.com/sync/v2/domainTemplates/providers/app.example/services/custom-domain/apply?a=b&sig=c&key=d"
        );
        assert_eq!(offer.link("../x", "custom-domain", ""), None);
        assert_eq!(offer.link("app.example", "custom-domain-apex", ""), None, "the provider never said that it knows it");
        let mut without = good();
        without["urlSyncUX"] = Value::Null;
        assert_eq!(read(&without).unwrap().offer(vec!["x".to_owned()]), None);
        let mut known = good();
        known["urlSyncUX"] = json!("https://panel.known.org/dc");
        assert!(read(&known).is_ok());
        let mut critical = good();
        critical["crit"] = json!(["urlAPI", "notThere"]);
        assert!(read(&critical).is_ok());
    }

    #[test]
    fn a_hostile_document_is_no_offer() {
        for (key, value) in [
            ("urlSyncUX", json!("javascript:alert(1)")),
            ("urlSyncUX", json!("http://connect.example.com")),
            ("urlSyncUX", json!("https://evil.org/example.com")),
            ("urlSyncUX", json!("https://example.com.evil.org")),
            ("urlSyncUX", json!("https://example.com@evil.org")),
            ("urlSyncUX", json!("https://127.0.0.1/sync")),
            ("urlSyncUX", json!("https://connect.example.com/?next=")),
            ("urlSyncUX", json!("https://connect.example.com/\"><script>")),
            ("urlSyncUX", json!(["https://connect.example.com"])),
            ("urlAPI", json!("https://169.254.169.254/latest")),
            ("urlAPI", json!("https://internal")),
            ("urlAPI", Value::Null),
            ("providerName", json!("<b>\u{202e}evil")),
            ("providerName", json!("x".repeat(500))),
            ("providerName", json!("")),
            ("providerId", json!("../../x")),
            ("crit", json!(["vnd.evil.must"])),
            ("crit", json!("all")),
        ] {
            let mut document = good();
            document[key] = value.clone();
            document["vnd.evil.must"] = json!(true);
            assert!(read(&document).is_err(), "{key} {value}");
        }
        for text in ["", "[]", "null", "{}", "\u{0}"] {
            assert!(Settings::read(text.as_bytes(), &asked(), &[]).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_document_makes_a_link_to_somebody_else(sync in "\\PC{0,60}", host in "[a-z.@:/]{0,30}") {
            for url in [sync.clone(), format!("https://{host}"), format!("https://{sync}.example.com"), format!("https://example.com{sync}")] {
                let mut document = good();
                document["urlSyncUX"] = json!(url);
                if let Ok(Some(offer)) = read(&document).map(|s| s.offer(vec!["x".to_owned()])) {
                    prop_assert!(offer.sync.host == "example.com" || offer.sync.host.ends_with(".example.com"), "{:?}", offer);
                }
            }
        }
    }
}
