//! The real ACME client against the test CA, over real HTTPS and real HTTP-01 requests.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeStatus, ChallengeType, Error, Identifier, Key, NewAccount,
    NewOrder, Order, OrderStatus, RetryPolicy, RevocationRequest,
};
use nameplate::env::Env;
use nameplate::sandbox::ca::{
    At, Ended, Endpoint, Fault, Kind, Limit, OverHttp, Problem, RetryAfter, RunningCa, Settings, TestCa, Twist, What, When,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

const HOST: &str = "support.acme.test";
const REDIRECTING: &str = "old.acme.test";
const FORBIDDEN: &str = "caa.acme.test";

type Tokens = Arc<Mutex<BTreeMap<String, String>>>;

/// A CA, the web server it validates at, and a client's view of both.
struct World {
    ca: TestCa,
    running: RunningCa,
    tokens: Tokens,
    dir: tempfile::TempDir,
    _web: AbortOnDropHandle<()>,
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

async fn token(State(tokens): State<Tokens>, Path(token): Path<String>) -> Result<String, StatusCode> {
    tokens.lock().unwrap().get(&token).cloned().ok_or(StatusCode::NOT_FOUND)
}

async fn redirect_to_host(Path(token): Path<String>) -> (StatusCode, [(&'static str, String); 1]) {
    (StatusCode::FOUND, [("location", format!("http://{HOST}/.well-known/acme-challenge/{token}"))])
}

impl World {
    async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    async fn with(settings: Settings) -> Self {
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let tokens = Tokens::default();
        let at = "/.well-known/acme-challenge/{token}";
        let (web, web_address) = listen().await;
        let (detour, detour_address) = listen().await;
        let answers = Router::new().route(at, axum::routing::get(token)).with_state(tokens.clone());
        let detours = Router::new().route(at, axum::routing::get(redirect_to_host));
        let _web = AbortOnDropHandle::new(tokio::spawn(async move {
            let (a, b) = tokio::join!(axum::serve(web, answers), axum::serve(detour, detours));
            a.and(b).unwrap();
        }));
        let validation = OverHttp {
            env: Env::real(),
            resolve: Arc::new(move |host| {
                Box::pin(async move {
                    match host.as_str() {
                        HOST | FORBIDDEN => Ok(vec![web_address]),
                        REDIRECTING => Ok(vec![detour_address]),
                        _ => Err(format!("{host} does not exist")),
                    }
                })
            }),
            caa: Arc::new(|host, account| {
                Box::pin(async move {
                    assert!(account.starts_with("https://127.0.0.1:"), "{account}");
                    if host != FORBIDDEN {
                        Ok(())
                    } else {
                        Err(Problem::new(Kind::Caa, "CAA of caa.acme.test forbids ca.test"))
                    }
                })
            }),
        };
        let ca = TestCa::new(settings, Env::real(), Arc::new(validation)).unwrap();
        let running = ca.serve(listen().await.0).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("root.pem"), ca.root_pem()).unwrap();
        World { ca, running, tokens, dir, _web }
    }

    fn directory(&self) -> String {
        self.running.directory_url().to_owned()
    }

    fn builder(&self) -> instant_acme::AccountBuilder {
        Account::builder_with_root(self.dir.path().join("root.pem")).unwrap()
    }

    async fn account(&self) -> Account {
        let ask =
            NewAccount { contact: &["mailto:ops@acme.test"], terms_of_service_agreed: true, only_return_existing: false };
        self.builder().create(&ask, self.directory(), None).await.unwrap().0
    }

    /// Puts every challenge's answer in place (or a wrong one) and announces it.
    async fn answer(&self, order: &mut Order, right: bool) {
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.unwrap();
            assert_eq!(authorization.status, AuthorizationStatus::Pending);
            let mut challenge = authorization.challenge(ChallengeType::Http01).unwrap();
            let answer = if right { challenge.key_authorization().as_str().to_owned() } else { "wrong".to_owned() };
            self.tokens.lock().unwrap().insert(challenge.token.clone(), answer);
            challenge.set_ready().await.unwrap();
        }
    }

    /// From newOrder to the chain.
    async fn issue(&self, account: &Account, host: &str) -> Result<String, Error> {
        let mut order = account.new_order(&NewOrder::new(&[Identifier::Dns(host.to_owned())])).await?;
        self.answer(&mut order, true).await;
        assert_eq!(order.poll_ready(&retries()).await?, OrderStatus::Ready);
        order.finalize_csr(&csr(host, &KeyPair::generate().unwrap())).await?;
        order.poll_certificate(&retries()).await
    }

    /// What the CA says of the one challenge of an order that failed.
    async fn refusal(&self, account: &Account, host: &str, right: bool) -> String {
        let mut order = account.new_order(&NewOrder::new(&[Identifier::Dns(host.to_owned())])).await.unwrap();
        self.answer(&mut order, right).await;
        assert_eq!(order.poll_ready(&retries()).await.unwrap(), OrderStatus::Invalid);
        let mut order = account.order(order.url().to_owned()).await.unwrap();
        let mut authorizations = order.authorizations();
        let mut authorization = authorizations.next().await.unwrap().unwrap();
        assert_eq!(authorization.status, AuthorizationStatus::Invalid);
        let challenge = authorization.challenge(ChallengeType::Http01).unwrap();
        assert_eq!(challenge.status, ChallengeStatus::Invalid);
        challenge.error.as_ref().unwrap().to_string()
    }
}

fn retries() -> RetryPolicy {
    RetryPolicy::new().initial_delay(Duration::from_millis(10)).backoff(1.5).timeout(Duration::from_secs(20))
}

fn csr(host: &str, key: &KeyPair) -> Vec<u8> {
    let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.serialize_request(key).unwrap().der().to_vec()
}

fn kind<T>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::Api(problem)) => problem.r#type.unwrap().rsplit(':').next().unwrap().to_owned(),
        Err(other) => panic!("not an ACME problem: {other}"),
        Ok(_) => panic!("this was to be refused"),
    }
}

#[tokio::test]
async fn a_certificate_is_issued_trusted_by_its_root_and_revoked() {
    let world = World::new().await;
    let account = world.account().await;
    for host in [HOST, REDIRECTING] {
        let chain = world.issue(&account, host).await.unwrap();
        let chain: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(chain.as_bytes()).map(Result::unwrap).collect();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(world.ca.root_pem().as_bytes()).unwrap()).unwrap();
        let verifier = rustls::client::WebPkiServerVerifier::builder(Arc::new(roots)).build().unwrap();
        let name = host.try_into().unwrap();
        let now = rustls::pki_types::UnixTime::since_unix_epoch(Duration::from_micros(Env::real().now().micros() as u64));
        verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], now).unwrap();
        let ask = RevocationRequest { certificate: &chain[0], reason: None };
        account.revoke(&ask).await.unwrap();
        assert_eq!(kind(account.revoke(&ask).await), "alreadyRevoked");
    }
    let counters = world.ca.state().counters().clone();
    assert_eq!((counters.orders_created, counters.certificates_by_name[HOST]), (2, 1));
}

#[tokio::test]
async fn a_key_has_one_account_which_is_found_again_changed_and_closed() {
    let world = World::new().await;
    let strangers = Key::generate_pkcs8().unwrap();
    let stranger = (strangers.0, PrivateKeyDer::Pkcs8(strangers.1));
    assert_eq!(kind(world.builder().from_key(stranger, world.directory()).await), "accountDoesNotExist");

    let (key, pkcs8) = Key::generate_pkcs8().unwrap();
    let der = pkcs8.secret_pkcs8_der().to_vec();
    let copy = || {
        let pkcs8 = PrivatePkcs8KeyDer::from(der.clone());
        (Key::from_pkcs8_der(pkcs8.clone_key()).unwrap(), PrivateKeyDer::Pkcs8(pkcs8))
    };
    let made = world.builder().create_from_key((key, PrivateKeyDer::Pkcs8(pkcs8)), world.directory()).await.unwrap().0;
    let again = world.builder().create_from_key(copy(), world.directory()).await.unwrap().0;
    let found = world.builder().from_key(copy(), world.directory()).await.unwrap().0;
    assert_eq!((made.id(), made.id()), (again.id(), found.id()));
    assert_eq!(world.ca.state().counters().accounts_created, 1);
    found.update_contacts(&["mailto:new@acme.test"]).await.unwrap();
    assert_eq!(kind(found.update_contacts(&["tel:+123"]).await), "unsupportedContact");
    again.deactivate().await.unwrap();
    assert_eq!(kind(found.update_contacts(&[]).await), "unauthorized");

    let unwilling = NewAccount { contact: &[], terms_of_service_agreed: false, only_return_existing: false };
    assert_eq!(kind(world.builder().create(&unwilling, world.directory(), None).await), "userActionRequired");
}

#[tokio::test]
async fn asking_twice_makes_two_orders() {
    let world = World::new().await;
    let account = world.account().await;
    let ids = [Identifier::Dns(HOST.to_owned())];
    let first = account.new_order(&NewOrder::new(&ids)).await.unwrap();
    let second = account.new_order(&NewOrder::new(&ids)).await.unwrap();
    assert_ne!(first.url(), second.url());
    assert_eq!(world.ca.state().counters().orders_by_name[HOST], 2);
}

#[tokio::test]
async fn refused_challenges_say_why() {
    let world = World::new().await;
    let account = world.account().await;
    let wrong = world.refusal(&account, HOST, false).await;
    assert!(wrong.contains("incorrectResponse") && wrong.contains("answered \"wrong\""), "{wrong}");
    let nowhere = world.refusal(&account, "nowhere.acme.test", true).await;
    assert!(nowhere.contains("error:dns") && nowhere.contains("does not exist"), "{nowhere}");
    let forbidden = world.refusal(&account, FORBIDDEN, true).await;
    assert!(forbidden.contains("error:caa"), "{forbidden}");
    let ids = [Identifier::Dns("*.acme.test".to_owned()), Identifier::Dns("bad_one.test".to_owned())];
    let Err(Error::Api(names)) = account.new_order(&NewOrder::new(&ids)).await else { panic!("a wildcard was ordered") };
    assert_eq!(names.subproblems.len(), 2);
}

#[tokio::test]
async fn a_csr_for_the_account_key_or_other_names_is_refused() {
    let world = World::new().await;
    let (key, pkcs8) = Key::generate_pkcs8().unwrap();
    let account_key = KeyPair::try_from(&PrivatePkcs8KeyDer::from(pkcs8.secret_pkcs8_der())).unwrap();
    let account = world.builder().create_from_key((key, PrivateKeyDer::Pkcs8(pkcs8)), world.directory()).await.unwrap().0;
    let mut order = account.new_order(&NewOrder::new(&[Identifier::Dns(HOST.to_owned())])).await.unwrap();
    let other = KeyPair::generate().unwrap();
    assert_eq!(kind(order.finalize_csr(&csr(HOST, &other)).await), "orderNotReady");
    world.answer(&mut order, true).await;
    order.poll_ready(&retries()).await.unwrap();
    assert_eq!(kind(order.finalize_csr(&csr(HOST, &account_key)).await), "badCSR");
    assert_eq!(kind(order.finalize_csr(&csr(FORBIDDEN, &other)).await), "badCSR");
    order.finalize_csr(&csr(HOST, &other)).await.unwrap();
    assert!(order.poll_certificate(&retries()).await.unwrap().contains("BEGIN CERTIFICATE"));
}

#[tokio::test]
async fn refused_nonces_do_not_stop_the_client() {
    let world = World::new().await;
    // Every other one; three in a row are more than the library tries.
    for nth in 1..40 {
        world.ca.script().add(Fault::once(At::Signed, What::BadNonce).when(When::Nth(2 * nth)));
    }
    let account = world.account().await;
    assert!(world.issue(&account, HOST).await.is_ok());
    assert_eq!(world.ca.state().counters().orders_by_name[HOST], 1, "a refused nonce makes no order");
    assert!(world.ca.script().happened().len() > 5);
}

#[tokio::test]
async fn a_forgotten_nonce_is_refused_with_a_fresh_one() {
    let world = World::with(Settings { nonces_kept: 1, ..Settings::default() }).await;
    let account = world.account().await;
    let ids = [Identifier::Dns(HOST.to_owned())];
    let mut first = account.new_order(&NewOrder::new(&ids)).await.unwrap();
    let _second = account.new_order(&NewOrder::new(&ids)).await.unwrap();
    assert_eq!(world.ca.script().asked(Endpoint::Order), 0);
    first.refresh().await.unwrap();
    assert_eq!(world.ca.script().asked(Endpoint::Order), 2, "the first try had a nonce that was forgotten");
}

#[tokio::test]
async fn a_dropped_answer_hides_an_order_that_was_made() {
    let world = World::new().await;
    world.ca.script().add(Fault::once(Endpoint::NewOrder, What::DropAfter));
    let account = world.account().await;
    let ids = [Identifier::Dns(HOST.to_owned())];
    let lost = account.new_order(&NewOrder::new(&ids)).await;
    assert!(matches!(lost, Err(Error::Other(_) | Error::Hyper(_))), "the connection was to break");
    assert_eq!(world.ca.state().counters().orders_created, 1);
    account.new_order(&NewOrder::new(&ids)).await.unwrap();
    assert_eq!(world.ca.state().counters().orders_created, 2);
}

#[tokio::test]
async fn an_outage_loses_nothing_and_the_same_address_serves_again() {
    let mut world = World::new().await;
    let account = world.account().await;
    let ids = [Identifier::Dns(HOST.to_owned())];
    let order = account.new_order(&NewOrder::new(&ids)).await.unwrap().url().to_owned();
    let address = world.running.address();
    let elsewhere = world.ca.serve(listen().await.0).unwrap();
    drop(std::mem::replace(&mut world.running, elsewhere));
    let deadline = Env::real().now() + Duration::from_secs(10);
    while account.order(order.clone()).await.is_ok() {
        assert!(Env::real().now() < deadline, "the CA still answers at {address}");
    }
    world.running = world.ca.serve(TcpListener::bind(address).await.unwrap()).unwrap();
    let mut order = account.order(order).await.unwrap();
    assert_eq!(order.state().status, OrderStatus::Pending);
}

#[tokio::test]
async fn a_scripted_answer_comes_in_place_of_acting_and_carries_a_nonce() {
    let world = World::new().await;
    let full = What::limited_for(Limit::RegisteredDomain, 90);
    world.ca.script().add(Fault::once(Endpoint::NewOrder, full).when(When::Always));
    world.ca.script().add(Fault::once(Endpoint::Directory, What::Slow { seconds: 0 }));
    let account = world.account().await;
    let Err(Error::Api(limited)) = account.new_order(&NewOrder::new(&[Identifier::Dns(HOST.to_owned())])).await else {
        panic!("it was to be refused")
    };
    assert!(limited.detail.unwrap().contains("already issued for \"acme.test\""), "it names what was ordered");
    assert_eq!(world.ca.state().counters().orders_created, 0);

    let root = reqwest::Certificate::from_pem(world.ca.root_pem().as_bytes()).unwrap();
    let client = reqwest::Client::builder().tls_certs_only([root]).no_proxy().build().unwrap();
    let base = format!("https://{}", world.running.address());
    let limited = client.post(format!("{base}/new-order")).send().await.unwrap();
    assert_eq!((limited.status().as_u16(), limited.headers()["retry-after"].to_str().unwrap()), (429, "90"));
    assert!(limited.headers().contains_key("replay-nonce"));
    assert_eq!(limited.headers()["content-type"], "application/problem+json");
}

#[tokio::test]
async fn requests_that_are_not_acme_are_answered_as_problems() {
    let world = World::new().await;
    let root = reqwest::Certificate::from_pem(world.ca.root_pem().as_bytes()).unwrap();
    let client = reqwest::Client::builder().tls_certs_only([root]).no_proxy().build().unwrap();
    let base = format!("https://{}", world.running.address());
    let directory: serde_json::Value = client.get(world.directory()).send().await.unwrap().json().await.unwrap();
    assert_eq!(directory["meta"]["caaIdentities"], serde_json::json!(["ca.test"]));
    let head = client.head(format!("{base}/new-nonce")).send().await.unwrap();
    assert_eq!(head.status(), 200);
    let nonce = head.headers()["replay-nonce"].to_str().unwrap().to_owned();
    assert_eq!(client.get(format!("{base}/new-nonce")).send().await.unwrap().status(), 204);

    let post = |path: &str, kind: &str, body: &str| {
        client.post(format!("{base}{path}")).header("content-type", kind).body(body.to_owned()).send()
    };
    let cases = [
        (post("/new-account", "application/json", "{}").await, 415, "malformed"),
        (post("/new-account", "application/jose+json", "{}").await, 400, "malformed"),
        (post("/new-account", "application/jose+json", &"[".repeat(100_000)).await, 400, "malformed"),
        (post("/nowhere", "application/jose+json", "{}").await, 404, "malformed"),
        (client.get(format!("{base}/new-account")).send().await, 405, "malformed"),
    ];
    for (answer, status, kind) in cases {
        let answer = answer.unwrap();
        assert_eq!(answer.status().as_u16(), status);
        let problem: serde_json::Value = answer.json().await.unwrap();
        assert_eq!(problem["type"], format!("urn:ietf:params:acme:error:{kind}"), "{problem}");
    }
    assert!(nonce.len() >= 22, "{nonce}");
}

/// Every way in which an answer can be spoilt, seen on the wire by a client that believes nothing.
#[tokio::test]
async fn answers_are_spoilt_as_scripted() {
    let world = World::new().await;
    let root = reqwest::Certificate::from_pem(world.ca.root_pem().as_bytes()).unwrap();
    let client = reqwest::Client::builder()
        .tls_certs_only([root])
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_secs(2))
        .build()
        .unwrap();
    let ask = async |what: What| {
        world.ca.script().add(Fault::once(Endpoint::Directory, what));
        let answer = client.get(world.directory()).send().await?;
        let status = answer.status().as_u16();
        Ok::<_, reqwest::Error>((status, answer.headers().clone(), answer.bytes().await?))
    };
    let whole = ask(What::Slow { seconds: 0 }).await.unwrap().2;
    assert_eq!(ask(What::HalfDocument).await.unwrap().2, whole.slice(..whole.len() / 2));
    assert_eq!(ask(What::Huge).await.unwrap().2.len(), whole.len() + (4 << 20));
    for what in [What::DropBefore, What::DropAfter, What::CutShort] {
        assert!(ask(what.clone()).await.is_err(), "{what:?}");
    }
    for what in [What::Frozen, What::FrozenAfter] {
        assert!(ask(what.clone()).await.unwrap_err().is_timeout(), "{what:?}");
    }
    let page = What::Page { status: 503, retry_after: Some(RetryAfter::Text("soon".to_owned())) };
    let (status, headers, body) = ask(page).await.unwrap();
    assert_eq!(
        (status, headers["content-type"].to_str().unwrap(), headers["retry-after"].to_str().unwrap()),
        (503, "text/html", "soon")
    );
    assert!(body.starts_with(b"<!DOCTYPE html>"));
    let (status, headers, _) = ask(What::Redirect { to: "http://192.0.2.1/".to_owned() }).await.unwrap();
    assert_eq!((status, headers["location"].to_str().unwrap()), (307, "http://192.0.2.1/"));
    let (status, _, body) = ask(What::Garbled).await.unwrap();
    assert!(status == 200 && body.starts_with(b"<!DOCTYPE html>"));
    let altered = ask(What::without("newOrder")).await.unwrap().2;
    let altered: serde_json::Value = serde_json::from_slice(&altered).unwrap();
    assert!(altered.get("newOrder").is_none() && altered.get("newNonce").is_some());
    let altered = ask(What::with("newOrder", "https://elsewhere.test/")).await.unwrap().2;
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&altered).unwrap()["newOrder"], "https://elsewhere.test/");
    world.ca.script().add(Fault::once(Endpoint::NewNonce, What::NoNonce));
    let nonce = client.head(format!("https://{}/new-nonce", world.running.address()));
    assert!(!nonce.send().await.unwrap().headers().contains_key("replay-nonce"));
    assert!(world.ca.script().entries().is_empty() && world.ca.script().holds() == 3);
}

#[tokio::test]
async fn profiles_are_advertised_taken_and_refused() {
    let profiles = BTreeMap::from([("shortlived".to_owned(), "six days".to_owned())]);
    let world = World::with(Settings { profiles, ..Settings::default() }).await;
    let account = world.account().await;
    let offered: Vec<_> = account.profiles().map(|p| p.name.to_owned()).collect();
    assert_eq!(offered, ["shortlived"]);
    let ids = [Identifier::Dns(HOST.to_owned())];
    account.new_order(&NewOrder::new(&ids).profile("shortlived")).await.unwrap();
    assert_eq!(kind(account.new_order(&NewOrder::new(&ids).profile("classic")).await), "invalidProfile");
    assert_eq!(world.ca.state().counters().orders_created, 1);
}

#[tokio::test]
async fn renewal_windows_are_told_and_a_certificate_is_replaced_once() {
    let world = World::new().await;
    let account = world.account().await;
    let chain = world.issue(&account, HOST).await.unwrap();
    let leaf = CertificateDer::from_pem_slice(chain.as_bytes()).unwrap();
    let id = CertificateIdentifier::try_from(&leaf).unwrap();
    let (info, again) = account.renewal_info(&id).await.unwrap();
    // The library counts from when the answer came.
    assert!(again <= Duration::from_secs(6 * 3600) && again > Duration::from_secs(6 * 3600 - 60), "{again:?}");
    assert!(info.suggested_window.start < info.suggested_window.end);
    let now = info.suggested_window.start;
    world.ca.script().add(Fault::once(Endpoint::RenewalInfo, Twist::Window { starts_in: 3600, ends_in: -3600 }));
    let (absurd, _) = account.renewal_info(&id).await.unwrap();
    assert!(absurd.suggested_window.end < absurd.suggested_window.start && absurd.suggested_window.start < now);
    world.ca.script().add(Fault::once(Endpoint::RenewalInfo, What::page(500)));
    assert!(account.renewal_info(&id).await.is_err());
    let ids = [Identifier::Dns(HOST.to_owned())];
    account.new_order(&NewOrder::new(&ids).replaces(id.clone())).await.unwrap();
    assert_eq!(kind(account.new_order(&NewOrder::new(&ids).replaces(id)).await), "alreadyReplaced");
}

/// What stands in the books is what the protocol shows.
#[tokio::test]
async fn the_books_are_wrong_as_scripted() {
    let world = World::new().await;
    let account = world.account().await;
    let ids = [Identifier::Dns(HOST.to_owned())];
    let script = world.ca.script();
    let place = async |twist: Twist| {
        script.add(Fault::once(Endpoint::NewOrder, twist));
        account.new_order(&NewOrder::new(&ids)).await.unwrap()
    };
    assert_eq!(place(Twist::AuthorizationReused).await.state().status, OrderStatus::Ready);
    assert_eq!(place(Twist::OrderExpired).await.state().status, OrderStatus::Invalid);
    assert_eq!(place(Twist::OrderInvalid { detail: "no".to_owned() }).await.state().status, OrderStatus::Invalid);
    let gone = place(Twist::OrderVanished).await;
    assert_eq!(kind(account.order(gone.url().to_owned()).await), "malformed");
    let mut order = place(Twist::Offers { challenges: vec!["dns-01".to_owned()] }).await;
    let mut authorizations = order.authorizations();
    let authorization = authorizations.next().await.unwrap().unwrap();
    assert_eq!(authorization.challenges.iter().map(|c| &c.r#type).collect::<Vec<_>>(), [&ChallengeType::Dns01]);

    let mut order =
        place(Twist::ValidationFails { kind: Kind::Dns, detail: "During secondary validation".to_owned() }).await;
    world.answer(&mut order, true).await;
    assert_eq!(order.poll_ready(&retries()).await.unwrap(), OrderStatus::Invalid);
    let mut order = place(Twist::OrderLags { seconds: 3600 }).await;
    world.answer(&mut order, true).await;
    order.refresh().await.unwrap();
    assert_eq!(order.state().status, OrderStatus::Pending);
    for ended in [Ended::Revoked, Ended::Deactivated, Ended::Expired] {
        let mut order = place(Twist::OrderLags { seconds: 0 }).await;
        script.add(Fault::once(Endpoint::Authorization, Twist::AuthorizationEnds { status: ended }));
        let mut authorizations = order.authorizations();
        let authorization = authorizations.next().await.unwrap().unwrap();
        assert_eq!(format!("{:?}", authorization.status), format!("{ended:?}"));
    }
    script.add(Fault::once(At::Everywhere, Twist::AccountsDeactivated));
    assert_eq!(kind(account.new_order(&NewOrder::new(&ids)).await), "unauthorized");
    script.add(Fault::once(At::Everywhere, Twist::AccountsVanish));
    assert_eq!(kind(account.new_order(&NewOrder::new(&ids)).await), "accountDoesNotExist");
}
