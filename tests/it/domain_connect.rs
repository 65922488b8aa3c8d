//! Domain Connect against a pretend DNS provider on loopback: found, offered, signed, and never believed.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nameplate::app::connect::{Finder, FinderSettings};
use nameplate::dns::Look;
use nameplate::env::Env;
use nameplate::model::domain_connect::{Services, key_records, public_key};
use nameplate::model::id::DomainId;
use nameplate::model::look::{Ask, Seen};
use nameplate::model::records::ApexRoute;
use nameplate::reach::document::{DocumentSettings, HttpsDocuments};
use nameplate::store::sql;
use nameplate::vault::request_signing::RequestSigner;
use nameplate::web::Connect;
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::support::stores::until;
use crate::support::web::{PUBLIC_URL, Web};

const HOST: &str = "connect.provider.test";
const PROVIDER: &str = "app.example";
const SERVICE: &str = "custom-domain";
const APEX: &str = "custom-domain-apex";

fn services() -> Services {
    Services { beneath: SERVICE.to_owned(), zone: APEX.to_owned() }
}

/// What the provider answers: to the settings' question, and to the templates'.
#[derive(Clone)]
struct Answers {
    settings: (u16, String, Vec<u8>),
    template: u16,
    apex: u16,
}

fn settings() -> Value {
    json!({
        "providerId": "provider.test", "providerName": "Provider", "providerDisplayName": "Provider <b>Brand</b>",
        "urlSyncUX": format!("https://{HOST}/sync"), "urlAPI": format!("https://{HOST}/api"),
        "nameServers": ["ns1.acme.test"],
    })
}

fn good() -> Answers {
    Answers { settings: (200, String::new(), settings().to_string().into_bytes()), template: 200, apex: 404 }
}

/// The pretend provider.
struct Provider {
    port: u16,
    roots: RootCertStore,
    answers: Arc<Mutex<Answers>>,
    asked: Arc<AtomicUsize>,
}

impl Provider {
    async fn start() -> Provider {
        let names = [HOST, "inside.provider.test", "evil.org"].map(str::to_owned);
        let key = rcgen::KeyPair::generate().unwrap();
        let leaf = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap().der().clone();
        let mut roots = RootCertStore::empty();
        roots.add(leaf.clone()).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf], PrivatePkcs8KeyDer::from(key.serialize_der()).into())
            .unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (answers, asked) = (Arc::new(Mutex::new(good())), Arc::new(AtomicUsize::new(0)));
        let (script, count) = (Arc::clone(&answers), Arc::clone(&asked));
        tokio::spawn(async move {
            let acceptor = TlsAcceptor::from(Arc::new(config));
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => break,
                    }
                }
                count.fetch_add(1, Ordering::SeqCst);
                let answers = script.lock().unwrap().clone();
                let head = String::from_utf8_lossy(&head).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default();
                let (status, headers, body) = match path {
                    path if path.starts_with("/v2/") => answers.settings,
                    "/api/v2/domainTemplates/providers/app.example/services/custom-domain" => {
                        (answers.template, String::new(), Vec::new())
                    }
                    "/api/v2/domainTemplates/providers/app.example/services/custom-domain-apex" => {
                        (answers.apex, String::new(), Vec::new())
                    }
                    _ => (404, String::new(), Vec::new()),
                };
                let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
                // Whoever reads no further than it wants closes the connection.
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(&body).await;
                let _ = stream.shutdown().await;
            }
        });
        Provider { port, roots, answers, asked }
    }

    fn finder(&self, web: &Web) -> Finder {
        let settings = DocumentSettings { port: self.port, loopback: true, timeout: Duration::from_secs(10) };
        let documents = HttpsDocuments::new(&Env::real(), settings, Some(self.roots.clone())).unwrap();
        let settings = FinderSettings {
            provider_id: PROVIDER.to_owned(),
            services: services(),
            known_hosts: vec!["known.example".to_owned()],
        };
        Finder::new(web.rig.app.clone(), Arc::new(documents), settings)
    }

    fn times(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn signer() -> RequestSigner {
    RequestSigner::from_pem(&RequestSigner::new_key().unwrap()).unwrap()
}

/// A world whose zone `acme.test` says who speaks Domain Connect for it; with the public key as it is published.
async fn world(seed: u64) -> (Web, Provider, Vec<String>) {
    let provider = Provider::start().await;
    let signer = signer();
    let records = key_records(&signer.public_key().unwrap());
    let web = Web::new(seed).await.connecting(Connect {
        provider_id: PROVIDER.to_owned(),
        services: services(),
        key_label: "_dcpubkeyv1".to_owned(),
        tenant_zone: Some("app.example".to_owned()),
        signer,
    });
    let server: IpAddr = "192.0.2.53".parse().unwrap();
    web.rig.zones.add_zone("provider.test", "ns1.provider.test", server);
    web.rig.zones.add(&format!("{HOST}. 60 IN A 127.0.0.1")).unwrap();
    web.rig.zones.add(&format!("_domainconnect.acme.test. 60 IN TXT \"{HOST}\"")).unwrap();
    (web, provider, records)
}

/// The apply link on a page, if it shows one.
fn link(page: &str) -> Option<String> {
    let at = page.split("class=\"button primary\" href=\"https://").nth(1)?;
    Some(format!("https://{}", at.split('"').next()?.replace("&#38;", "&")))
}

fn decoded(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut out = Vec::new();
    while let Some(b) = bytes.next() {
        if b == b'%' {
            let hex = [bytes.next().unwrap(), bytes.next().unwrap()];
            out.push(u8::from_str_radix(std::str::from_utf8(&hex).unwrap(), 16).unwrap());
        } else {
            out.push(b);
        }
    }
    String::from_utf8(out).unwrap()
}

/// What the provider does with a link: checks the signature by the published key, and reads the parameters.
fn verified(link: &str, published: &[String]) -> Vec<(String, String)> {
    verified_for(SERVICE, link, published)
}

fn verified_for(service: &str, link: &str, published: &[String]) -> Vec<(String, String)> {
    let (address, query) = link.split_once('?').unwrap();
    assert_eq!(address, format!("https://{HOST}/sync/v2/domainTemplates/providers/{PROVIDER}/services/{service}/apply"));
    let (canonical, rest) = query.split_once("&sig=").unwrap();
    let (signature, key) = rest.split_once("&key=").unwrap();
    assert_eq!(key, "_dcpubkeyv1");
    let public = public_key(published).unwrap();
    let signature = STANDARD.decode(decoded(signature)).unwrap();
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &public);
    key.verify(canonical.as_bytes(), &signature).unwrap();
    assert!(key.verify(canonical.replace("acme", "evil").as_bytes(), &signature).is_err());
    canonical.split('&').map(|p| p.split_once('=').unwrap()).map(|(n, v)| (n.to_owned(), decoded(v))).collect()
}

async fn page(web: &Web, cookie: &str, id: &DomainId) -> String {
    web.page(cookie, &format!("/domains/{id}")).await.body
}

#[tokio::test]
async fn found_offered_signed_and_verified_by_the_published_key() {
    let (web, provider, published) = world(700).await;
    let (tenant, token) = web.tenant("acme").await;
    let id = web.rig.claim(&tenant, "support.acme.test").await;
    let cookie = web.admin(&tenant).await;
    assert_eq!(link(&page(&web, &cookie, &id).await), None, "a page asks nobody");
    assert_eq!(provider.times(), 0);

    assert_eq!(provider.finder(&web).round().await.unwrap(), 1);
    assert_eq!(provider.times(), 3, "the settings, and whether each template is known");
    let shown = page(&web, &cookie, &id).await;
    assert!(shown.contains("Provider &#60;b&#62;Brand&#60;/b&#62;") && !shown.contains("<b>Brand"), "{shown}");
    let proof = web.rig.value(&id).await.strip_prefix("nameplate-verify=").unwrap().to_owned();
    let parameters = verified(&link(&shown).unwrap(), &published);
    let wanted = |back: &str| {
        [("domain", "acme.test"), ("host", "support"), ("proof", proof.as_str()), ("redirect_uri", back), ("tenant", "acme")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    assert_eq!(parameters, wanted(&format!("{PUBLIC_URL}/domains/{id}?connected=1")));

    // Whoever was handed the page is sent back to a place that gives nothing away.
    let made = web.api(&token, "POST", "/api/v1/hand-off-links", Some(json!({ "domain": id }))).await.json();
    let handed = made["url"].as_str().unwrap().strip_prefix(PUBLIC_URL).unwrap();
    let parameters = verified(&link(&web.page("", handed).await.body).unwrap(), &published);
    assert_eq!(parameters, wanted(&format!("{PUBLIC_URL}/connected")));
    assert!(web.page("", "/connected?error=access_denied&error_description=%3Cb%3E").await.body.contains("close this page"));

    // What the provider says on the way back is no proof, and none of it is shown.
    let back = web.page(&cookie, &format!("/domains/{id}?connected=1")).await.body;
    assert!(back.contains("You are back from your DNS provider") && back.contains("Waiting for DNS"), "{back}");
    let refused = format!("/domains/{id}?connected=1&error=access_denied&error_description=user_cancel%3Cscript%3E");
    let refused = web.page(&cookie, &refused).await.body;
    assert!(refused.contains("did not set the records") && !refused.contains("user_cancel"), "{refused}");

    // Pages, and names of the same zone, cost the provider nothing more.
    let second = web.rig.claim(&tenant, "shop.acme.test").await;
    assert_eq!(provider.finder(&web).round().await.unwrap(), 1);
    assert_eq!(verified(&link(&page(&web, &cookie, &second).await).unwrap(), &published)[1].1, "shop");
    assert_eq!((provider.finder(&web).round().await.unwrap(), provider.times()), (0, 3));

    // No CNAME may stand at the zone itself: nothing is offered for it by who does not know the template for that.
    let apex = web.rig.claim(&tenant, "acme.test").await;
    provider.finder(&web).round().await.unwrap();
    assert_eq!(link(&page(&web, &cookie, &apex).await), None);

    // A day later the provider is asked again, and may have changed its mind.
    provider.answers.lock().unwrap().template = 404;
    web.rig.hand.advance(Duration::from_secs(86_401));
    assert_eq!(provider.finder(&web).round().await.unwrap(), 3);
    let cookie = web.admin(&tenant).await;
    assert_eq!(link(&page(&web, &cookie, &id).await), None);
}

/// The link that the API gives, or the code of its refusal.
async fn by_api(web: &Web, token: &str, id: &DomainId) -> Result<Value, String> {
    let answer = web.api(token, "GET", &format!("/api/v1/domains/{id}/apply-link"), None).await;
    let status = answer.status.as_u16();
    let body = answer.json();
    if status == 200 { Ok(body) } else { Err(format!("{status} {}", body["code"].as_str().unwrap())) }
}

/// The same world where a bare domain is led to us by a name.
fn by_alias(web: Web, target: Option<&str>) -> Web {
    web.leading_bare_names(ApexRoute { target: target.map(str::to_owned), addresses: vec![] })
}

#[tokio::test]
async fn a_bare_domain_is_set_up_by_a_template_of_its_own() {
    let (web, provider, published) = world(704).await;
    provider.answers.lock().unwrap().apex = 200;
    let (tenant, token) = web.tenant("acme").await;
    let apex = web.rig.claim(&tenant, "acme.test").await;
    provider.finder(&web).round().await.unwrap();
    let proof = web.rig.value(&apex).await.strip_prefix("nameplate-verify=").unwrap().to_owned();
    let wanted = |more: &[(&str, &str)]| {
        let back = format!("{PUBLIC_URL}/connected");
        let fixed = [("domain", "acme.test"), ("proof", &proof), ("redirect_uri", &back)];
        let all = fixed.iter().chain(more).map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        all.collect::<Vec<(String, String)>>()
    };
    // The addresses stand in the template: no host, no target, nothing but the proof is a variable.
    let given = by_api(&web, &token, &apex).await.unwrap();
    assert_eq!((given["zone"].as_str(), given["host"].as_str()), (Some("acme.test"), Some(HOST)));
    assert_eq!(verified_for(APEX, given["url"].as_str().unwrap(), &published), wanted(&[]));
    let shown = link(&page(&web, &web.admin(&tenant).await, &apex).await).unwrap();
    assert!(shown.contains("/custom-domain-apex/apply?"), "{shown}");

    // Where a name leads to us, it stands in the template unless it is the tenant's own.
    let web = by_alias(web, Some("apex.app.example"));
    let given = by_api(&web, &token, &apex).await.unwrap();
    assert_eq!(verified_for(APEX, given["url"].as_str().unwrap(), &published), wanted(&[]));
    let web = by_alias(web, None);
    let given = by_api(&web, &token, &apex).await.unwrap();
    assert_eq!(verified_for(APEX, given["url"].as_str().unwrap(), &published), wanted(&[("tenant", "acme")]));

    // A zone of its own beneath a registered domain takes no CNAME at its top, and a bare name in somebody's zone is none.
    let server: IpAddr = "192.0.2.53".parse().unwrap();
    web.rig.zones.add_zone("deep.acme.test", "ns1.deep.acme.test", server);
    web.rig.zones.add(&format!("_domainconnect.deep.acme.test. 60 IN TXT \"{HOST}\"")).unwrap();
    let deep = web.rig.claim(&tenant, "deep.acme.test").await;
    provider.finder(&web).round().await.unwrap();
    assert_eq!(by_api(&web, &token, &deep).await, Err("404 nothing_to_apply".to_owned()));
}

#[tokio::test]
async fn a_provider_that_knows_the_template_for_bare_domains_alone_is_offered_for_those_alone() {
    let (web, provider, published) = world(705).await;
    *provider.answers.lock().unwrap() = Answers { template: 404, apex: 200, ..good() };
    let (tenant, token) = web.tenant("acme").await;
    let (apex, shop) = (web.rig.claim(&tenant, "acme.test").await, web.rig.claim(&tenant, "shop.acme.test").await);
    provider.finder(&web).round().await.unwrap();
    let given = by_api(&web, &token, &apex).await.unwrap();
    verified_for(APEX, given["url"].as_str().unwrap(), &published);
    assert_eq!(by_api(&web, &token, &shop).await, Err("404 nothing_to_apply".to_owned()));
}

#[tokio::test]
async fn the_api_gives_the_link_that_the_page_has() {
    let (web, provider, published) = world(706).await;
    let (tenant, token) = web.tenant("acme").await;
    let (_, stranger) = web.tenant("beta").await;
    let id = web.rig.claim(&tenant, "support.acme.test").await;
    assert_eq!(by_api(&web, &token, &id).await, Err("404 nothing_to_apply".to_owned()), "nobody has looked yet");
    provider.finder(&web).round().await.unwrap();
    let given = by_api(&web, &token, &id).await.unwrap();
    assert_eq!(given["provider"], "Provider <b>Brand</b>", "what it calls itself, for whoever shows it to escape");
    let parameters = verified(given["url"].as_str().unwrap(), &published);
    assert_eq!(parameters[1], ("host".to_owned(), "support".to_owned()));
    assert_eq!(parameters[3], ("redirect_uri".to_owned(), format!("{PUBLIC_URL}/connected")));
    // Nobody else's, and nothing once the records are in place.
    assert_eq!(by_api(&web, &stranger, &id).await, Err("404 domain_not_found".to_owned()));
    web.rig.publish(&id, "support.acme.test").await;
    for _ in 0..400 {
        web.rig.turn().await;
        if by_api(&web, &token, &id).await.is_err() {
            break;
        }
    }
    assert_eq!(by_api(&web, &token, &id).await, Err("404 nothing_to_apply".to_owned()));
}

#[tokio::test]
async fn once_the_records_are_right_nothing_is_offered() {
    let (web, provider, _) = world(701).await;
    let (tenant, _) = web.tenant("acme").await;
    let id = web.rig.claim(&tenant, "support.acme.test").await;
    provider.finder(&web).round().await.unwrap();
    let cookie = web.admin(&tenant).await;
    assert!(link(&page(&web, &cookie, &id).await).is_some());
    web.rig.publish(&id, "support.acme.test").await;
    for _ in 0..400 {
        web.rig.turn().await;
        if web.rig.domain_text(&id, "claim").await.as_deref() == Some("live") {
            break;
        }
    }
    assert_eq!(web.rig.domain_text(&id, "claim").await.as_deref(), Some("live"));
    assert_eq!(link(&page(&web, &cookie, &id).await), None);
}

#[tokio::test]
async fn what_a_hostile_zone_or_provider_says_never_reaches_the_page() {
    let (web, provider, _) = world(702).await;
    let (tenant, _) = web.tenant("acme").await;
    let cookie = web.admin(&tenant).await;
    let server: IpAddr = "192.0.2.53".parse().unwrap();
    web.rig.zones.add("inside.provider.test. 60 IN A 10.0.0.1").unwrap();
    web.rig.zones.add("meta.provider.test. 60 IN A 169.254.169.254").unwrap();
    let with = |key: &str, value: &str| {
        let mut document = settings();
        document[key] = json!(value);
        Answers { settings: (200, String::new(), document.to_string().into_bytes()), ..good() }
    };
    let mut huge = settings();
    huge["vnd.filler"] = json!("x".repeat(1_000_000));
    let cases: Vec<(&str, Answers)> = vec![
        (HOST, with("urlSyncUX", "javascript:alert(1)")),
        (HOST, with("urlSyncUX", "https://evil.org/sync")),
        (HOST, with("urlSyncUX", "https://connect.provider.test@evil.org/")),
        (HOST, with("urlSyncUX", "https://connect.provider.test/\"><script>alert(1)</script>")),
        (HOST, with("urlAPI", "https://meta.provider.test/latest")),
        (HOST, with("urlAPI", "https://169.254.169.254/latest")),
        (HOST, Answers { settings: (200, String::new(), huge.to_string().into_bytes()), ..good() }),
        (HOST, Answers { settings: (302, "location: https://127.0.0.1/\r\n".into(), vec![]), ..good() }),
        (HOST, Answers { settings: (200, String::new(), b"\xff\xfe not json".to_vec()), ..good() }),
        (HOST, Answers { template: 302, ..good() }),
        ("inside.provider.test", good()),
        ("127.0.0.1", good()),
        ("connect.provider.test:443", good()),
        ("nowhere.provider.test", good()),
        ("user@connect.provider.test", good()),
    ];
    for (n, (says, answers)) in cases.into_iter().enumerate() {
        let zone = format!("zone{n}.test");
        web.rig.zones.add_zone(&zone, &format!("ns1.{zone}"), server);
        web.rig.zones.add(&format!("_domainconnect.{zone}. 60 IN TXT \"{says}\"")).unwrap();
        *provider.answers.lock().unwrap() = answers;
        let id = web.rig.claim(&tenant, &format!("support.{zone}")).await;
        assert_eq!(provider.finder(&web).round().await.unwrap(), 1, "case {n}");
        let shown = page(&web, &cookie, &id).await;
        assert_eq!(link(&shown), None, "case {n}");
        assert!(!shown.contains("javascript:") && !shown.contains("evil.org") && !shown.contains("Brand"), "case {n}");
    }
    // The same zone with an honest answer would have been offered.
    *provider.answers.lock().unwrap() = good();
    let honest = web.rig.claim(&tenant, "support.acme.test").await;
    provider.finder(&web).round().await.unwrap();
    assert!(link(&page(&web, &cookie, &honest).await).is_some());
}

#[tokio::test]
async fn of_many_finders_one_asks() {
    let (web, provider, _) = world(703).await;
    let (tenant, _) = web.tenant("acme").await;
    web.rig.claim(&tenant, "support.acme.test").await;
    let finders: Vec<Finder> = (0..8).map(|_| provider.finder(&web)).collect();
    let rounds = futures::future::join_all(finders.iter().map(Finder::round)).await;
    let asked: usize = rounds.into_iter().map(Result::unwrap).sum();
    assert_eq!((asked, provider.times()), (1, 3));
}

/// Looks that never end for names of one zone, and are as usual for all others.
struct Silent(Arc<dyn Look>);

#[async_trait]
impl Look for Silent {
    async fn look(&self, ask: &Ask) -> Seen {
        if ask.registered_domain == "silent.test" {
            std::future::pending::<()>().await;
        }
        self.0.look(ask).await
    }
}

#[tokio::test]
async fn silent_zones_of_one_tenant_keep_nobody_else_waiting() {
    let (mut web, provider, _) = world(711).await;
    web.rig.app.look = Arc::new(Silent(Arc::clone(&web.rig.app.look)));
    let (evil, _) = web.tenant("evil").await;
    let (acme, _) = web.tenant("acme").await;
    let mine = web.rig.claim(&acme, "support.acme.test").await;
    for n in 0..20 {
        web.rig.hand.advance(Duration::from_secs(1));
        web.rig.claim(&evil, &format!("n{n}.silent.test")).await;
    }
    let finder = provider.finder(&web);
    let found = async |id: &DomainId| {
        let rows = sql("SELECT count(*) AS n FROM domain_connect WHERE domain_id = $1 AND offer IS NOT NULL");
        web.rig.count(rows.bind(id.as_str())).await == 1
    };
    let round = tokio::spawn({
        let finder = finder.clone();
        async move { finder.round().await }
    });
    until("the name of the other tenant has its offer", async || found(&mine).await).await;
    let taken =
        sql("SELECT count(*) AS n FROM domain_connect c JOIN domains d ON d.id = c.domain_id WHERE d.tenant_id = $1");
    assert_eq!(web.rig.count(taken.clone().bind(evil.as_str())).await, 2, "a tenant has its share and no more");
    // The round is over in spite of them, and the next has a place for who comes.
    web.rig.hand.advance(Duration::from_secs(5));
    assert_eq!(round.await.unwrap().unwrap(), 3);
    let late = web.rig.claim(&acme, "late.acme.test").await;
    let next = tokio::spawn({
        let finder = finder.clone();
        async move { finder.round().await }
    });
    until("a name that came later has its offer", async || found(&late).await).await;
    assert_eq!(web.rig.count(taken.bind(evil.as_str())).await, 2);
    next.abort();
}

#[test]
fn the_sample_template_is_what_the_sample_configuration_gives() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let run = |command: &[&str], more: &[(&str, &str)]| {
        let mut process = std::process::Command::new(env!("CARGO_BIN_EXE_nameplate"));
        process.env_clear().current_dir(root).args(["--config", "deploy/nameplate.toml", "domain-connect"]).args(command);
        process.env("NAMEPLATE__DOMAIN_CONNECT__PROVIDER_ID", "app.example.net").envs(more.iter().copied());
        let output = process.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let sample = |command: &[&str], service: &str| {
        let printed: Value = serde_json::from_str(&run(command, &[])).unwrap();
        let path = root.join(format!("deploy/domain-connect/app.example.net.{service}.json"));
        if std::env::var_os("NAMEPLATE_REWRITE_DOCS").is_some() {
            std::fs::write(&path, serde_json::to_string_pretty(&printed).unwrap() + "\n").unwrap();
        }
        let kept: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap_or_default()).unwrap_or_default();
        assert_eq!(kept, printed, "write it anew: NAMEPLATE_REWRITE_DOCS=1 cargo test --test it sample_template");
        assert_eq!(printed["serviceId"].as_str(), Some(service));
        printed
    };
    let apex = sample(&["template", "--apex"], APEX);
    let records = apex["records"].as_array().unwrap();
    assert_eq!((records[0]["type"].as_str(), apex["hostRequired"].as_bool()), (Some("TXT"), Some(false)));
    assert!(records.len() > 1 && records[1..].iter().all(|r| r["type"] != "CNAME" && r["host"] == "@"), "{apex}");
    let printed = sample(&["template"], SERVICE);
    let records = printed["records"].as_array().unwrap();
    assert_eq!(records.iter().map(|r| r["type"].as_str().unwrap()).collect::<Vec<_>>(), ["TXT", "CNAME"]);
    assert_eq!(
        (records[0]["host"].as_str(), records[1]["pointsTo"].as_str()),
        (Some("_nameplate-challenge"), Some("%tenant%.app.example.net"))
    );
    assert_eq!(
        (printed["hostRequired"].as_bool(), printed["syncRedirectDomain"].as_str()),
        (Some(true), Some("domains.example.com"))
    );

    // The key that is made is one that signs, and its records hold the public half.
    let pem = run(&["new-key"], &[]);
    let lines = run(&["records"], &[("NAMEPLATE__DOMAIN_CONNECT__KEY", &pem)]);
    let texts: Vec<String> = lines
        .lines()
        .map(|line| {
            let (owner, text) = line.split_once(" 3600 IN TXT ").unwrap();
            assert_eq!(owner, "_dcpubkeyv1.app.example.net.");
            text.trim_matches('"').to_owned()
        })
        .collect();
    let signer = RequestSigner::from_pem(&nameplate::model::secret::Secret::from(pem)).unwrap();
    assert_eq!(public_key(&texts), Some(signer.public_key().unwrap()));
    assert!(!lines.contains("PRIVATE"));
}
