//! The ACME client against Pebble: a CA written by others, in strict mode, so that our own test CA and our client cannot share
//! a mistake. A machine without Pebble fails these tests; they are never skipped.

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nameplate::acme::{
    AccountRef, AccountStatus, AccountUrl, AcmeError, Authority, AuthorizationStatus, Binding, ChallengeStatus, Class,
    HttpSettings, InstantAcme, OrderStatus, Roots, chain, csr,
};
use nameplate::env::Env;
use nameplate::model::evidence::Actor;
use nameplate::model::hostname::Hostname;
use nameplate::model::secret::Secret;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// An account that Pebble keeps elsewhere, as it shows it.
const EAB_KEY_ID: &str = "kid-1";
const EAB_KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

struct Pebble {
    process: Child,
    directory: String,
    root_pem: String,
    _files: tempfile::TempDir,
}

impl Drop for Pebble {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Pebble {
    /// Starts it and waits until it answers. Its validation believes everything, or finds no DNS server at all.
    async fn start(nonces_refused: u8, believes: bool) -> Self {
        for _ in 0..3 {
            let mut pebble = Self::spawn(nonces_refused, believes);
            let client = pebble.client();
            let answers = until("Pebble answers or ends", async || match client.directory().await {
                Ok(_) => Some(true),
                Err(_) => pebble.process.try_wait().unwrap().map(|_| false),
            });
            if answers.await {
                return pebble;
            }
            // Somebody else took one of its ports in between.
        }
        panic!("Pebble ended three times before it answered");
    }

    fn spawn(nonces_refused: u8, believes: bool) -> Self {
        let files = tempfile::tempdir().unwrap();
        let (root, root_pem) = {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let pem = params.self_signed(&key).unwrap().pem();
            (Issuer::new(params, key), pem)
        };
        let key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &root).unwrap();
        let path = |name: &str| files.path().join(name);
        fs::write(path("cert.pem"), server.pem()).unwrap();
        fs::write(path("key.pem"), key.serialize_pem()).unwrap();
        let acme = free_port();
        let config = serde_json::json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{acme}"), "managementListenAddress": format!("127.0.0.1:{}", free_port()),
            "certificate": path("cert.pem"), "privateKey": path("key.pem"), "httpPort": 9, "tlsPort": 9,
            "domainBlocklist": ["blocked.test"], "externalAccountMACKeys": { EAB_KEY_ID: EAB_KEY },
        }});
        fs::write(path("config.json"), config.to_string()).unwrap();
        let process = Command::new("pebble")
            .args(["-strict", "-dnsserver", &format!("127.0.0.1:{}", free_port()), "-config"])
            .arg(path("config.json"))
            .env("PEBBLE_WFE_NONCEREJECT", nonces_refused.to_string())
            .env("PEBBLE_VA_ALWAYS_VALID", if believes { "1" } else { "0" })
            .env("PEBBLE_VA_NOSLEEP", "1")
            .stdin(Stdio::null())
            .stdout(fs::File::create(path("log")).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .expect("pebble is installed (apt-get install pebble)");
        Pebble { process, directory: format!("https://127.0.0.1:{acme}/dir"), root_pem, _files: files }
    }

    fn client(&self) -> InstantAcme {
        let settings = HttpSettings { roots: Roots::Pem(self.root_pem.clone().into()), ..HttpSettings::default() };
        InstantAcme::new(&self.directory, &settings, &Env::real()).unwrap()
    }

    async fn account(&self) -> AccountRef {
        let (client, key) = (self.client(), csr::new_account_key(&Env::real()).unwrap());
        let url = again(async || client.register(&key, &[]).await).await.unwrap();
        AccountRef { url, key }
    }
}

/// Asks until there is something, at most 20 s.
async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let env = Env::real();
    let deadline = env.now() + Duration::from_secs(20);
    loop {
        match ask().await {
            Some(found) => return found,
            None if env.now() > deadline => panic!("not within 20 s: {what}"),
            None => env.sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Repeats a step as long as its failure says so, as the caller of the adapter does.
async fn again<T>(mut step: impl AsyncFnMut() -> Result<T, AcmeError>) -> Result<T, AcmeError> {
    for _ in 0..50 {
        match step().await {
            Err(e) if e.class() == Class::StepAgain => {}
            outcome => return outcome,
        }
    }
    panic!("50 times told to step again");
}

fn names() -> Vec<Hostname> {
    vec![Hostname::trusted("support.acme.test"), Hostname::trusted("acme.test")]
}

/// From a new order to its checked chain, every step repeated when told so.
async fn issue(client: &InstantAcme, account: &AccountRef, key: &Secret) -> (String, chain::CheckedChain) {
    let names = names();
    let url = again(async || client.new_order(account, &names, None).await).await.unwrap().url;
    for authorization in again(async || client.authorizations(account, &url).await).await.unwrap() {
        assert!(names.contains(&authorization.name));
        if authorization.status == AuthorizationStatus::Valid {
            // Of an earlier order: Pebble gives every second one again.
            continue;
        }
        assert_eq!(authorization.status, AuthorizationStatus::Pending);
        let challenge = authorization.http01.unwrap();
        assert_eq!((challenge.status, challenge.problem.is_none()), (ChallengeStatus::Pending, true));
        assert!(challenge.key_authorization.starts_with(&format!("{}.", challenge.token)));
        again(async || client.announce(account, &url, &challenge.url).await).await.unwrap();
        again(async || client.announce(account, &url, &challenge.url).await).await.unwrap();
    }
    let read = async || again(async || client.order(account, &url).await).await.unwrap();
    until("the order is ready", async || (read().await.status == OrderStatus::Ready).then_some(())).await;
    let csr = csr::csr(key, &names).unwrap();
    for _ in 0..2 {
        let view = again(async || client.finalize(account, &url, &csr).await).await.unwrap();
        assert!(matches!(view.status, OrderStatus::Processing | OrderStatus::Valid), "{view:?}");
    }
    until("the order is valid", async || (read().await.status == OrderStatus::Valid).then_some(())).await;
    let pem = again(async || client.certificate(account, &url).await).await.unwrap();
    let checked = chain::check(&pem, key, &names, Env::real().now()).unwrap();
    (url, checked)
}

#[tokio::test]
async fn pebble_issues_and_a_second_process_resumes_by_url() {
    let pebble = Pebble::start(0, true).await;
    let (client, account) = (pebble.client(), pebble.account().await);
    assert!(client.directory().await.unwrap().terms_of_service.is_some());
    let contacts = ["mailto:ops@saas.example".to_owned()];
    assert_eq!(client.register(&account.key, &contacts).await.unwrap(), account.url, "a known key finds its account");

    let key = csr::new_key(&Env::real()).unwrap();
    let (url, checked) = issue(&client, &account, &key).await;
    assert!(checked.der.len() >= 2 && checked.not_before < checked.not_after);

    let later = pebble.client();
    let view = later.order(&account, &url).await.unwrap();
    assert_eq!((view.status, view.problem), (OrderStatus::Valid, None));
    let pem = later.certificate(&account, &url).await.unwrap();
    assert_eq!(chain::check(&pem, &key, &names(), Env::real().now()).unwrap(), checked);
    // Pebble has no ARI: what is to be replaced is left out, and the order is made.
    let placed = later.new_order(&account, &names(), checked.ari_id.as_deref()).await.unwrap();
    assert!(!placed.replaces && placed.order.is_some());
}

#[tokio::test]
async fn pebble_refusing_half_of_all_nonces_loses_nothing() {
    let pebble = Pebble::start(50, true).await;
    let (client, account) = (pebble.client(), pebble.account().await);
    for _ in 0..3 {
        issue(&client, &account, &csr::new_key(&Env::real()).unwrap()).await;
    }
}

#[tokio::test]
async fn what_pebble_refuses_is_judged_and_told_whole() {
    let pebble = Pebble::start(0, false).await;
    let (client, account) = (pebble.client(), pebble.account().await);

    let placed = client.new_order(&account, &names()[..1], None).await.unwrap();
    let challenge = client.authorizations(&account, &placed.url).await.unwrap().remove(0).http01.unwrap();
    client.announce(&account, &placed.url, &challenge.url).await.unwrap();
    let failed = until("the authorization fails", async || {
        let read = client.authorizations(&account, &placed.url).await.unwrap().remove(0);
        (read.status == AuthorizationStatus::Invalid).then_some(read)
    })
    .await;
    let problem = failed.problem.unwrap();
    assert_eq!((problem.acme_type(), problem.acts()), ("connection", Actor::Tenant), "{problem}");
    assert!(problem.json().get("status").is_some() && !problem.detail().is_empty(), "{problem}");
    let order = client.order(&account, &placed.url).await.unwrap();
    assert_eq!(order.status, OrderStatus::Invalid);
    for error in [
        client.finalize(&account, &placed.url, b"csr").await.unwrap_err(),
        client.certificate(&account, &placed.url).await.unwrap_err(),
        client.order(&account, &format!("{}x", placed.url)).await.unwrap_err(),
        client.new_order(&account, &[Hostname::trusted("www.blocked.test")], None).await.unwrap_err(),
    ] {
        assert!(matches!(error.class(), Class::GiveUp | Class::Missing), "{error}");
    }
    let nobody = AccountRef { url: AccountUrl(format!("{}x", account.url.0)), ..account.clone() };
    let error = client.new_order(&nobody, &names(), None).await.unwrap_err();
    assert_eq!((error.class(), error.acted_on), (Class::WaitFor(Actor::Platform), false), "{error}");

    let other_root = rcgen::generate_simple_self_signed(vec!["root.test".to_owned()]).unwrap().cert.pem();
    let strangers = HttpSettings { roots: Roots::Pem(other_root.into()), ..HttpSettings::default() };
    let untrusting = InstantAcme::new(&pebble.directory, &strangers, &Env::real()).unwrap();
    let error = untrusting.new_order(&account, &names(), None).await.unwrap_err();
    assert_eq!((error.class(), error.acted_on), (Class::RetryAt(None), false), "{error}");
}

#[tokio::test]
async fn pebble_takes_a_bound_account_and_gives_it_another_key() {
    // Of the nonces it refuses some, which is no reason to fail.
    let pebble = Pebble::start(20, true).await;
    let (client, key) = (pebble.client(), csr::new_account_key(&Env::real()).unwrap());
    let hmac = nameplate::config::hmac_key(&Secret::from(EAB_KEY.to_owned())).unwrap();
    let wrong = Binding { key_id: EAB_KEY_ID.to_owned(), hmac: Secret::new(vec![7; 48]) };
    assert!(client.register_bound(&key, &[], &wrong).await.is_err(), "a wrong key of the binding");
    let binding = Binding { key_id: EAB_KEY_ID.to_owned(), hmac };
    let contacts = ["ops@saas.example".to_owned()];
    let url = again(async || client.register_bound(&key, &contacts, &binding).await).await.unwrap();
    let account = AccountRef { url, key };
    assert_eq!(again(async || client.account(&account).await).await.unwrap(), AccountStatus::Valid);

    let next = AccountRef { url: account.url.clone(), key: csr::new_account_key(&Env::real()).unwrap() };
    let unknown = client.account(&next).await.unwrap_err();
    assert!(matches!(unknown.class(), Class::GiveUp | Class::WaitFor(_)), "{unknown}");
    again(async || client.change_key(&account, &next.key).await).await.unwrap();
    assert_eq!(again(async || client.account(&next).await).await.unwrap(), AccountStatus::Valid);
    assert!(client.account(&account).await.is_err(), "the old key opens nothing");
    issue(&client, &next, &csr::new_key(&Env::real()).unwrap()).await;
}
