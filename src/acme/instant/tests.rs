//! The adapter against a CA that answers as the test scripts it: what no well-behaved CA would do.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::super::csr::new_account_key;
use super::super::error::{Class, Kind};
use super::super::http::Roots;
use super::*;
use crate::env::manual::Hand;
use crate::model::evidence::Actor;

/// With a root of its own: a machine need not have any for these tests.
fn settings() -> HttpSettings {
    let root = rcgen::generate_simple_self_signed(vec!["root.test".to_owned()]).unwrap().cert.pem();
    HttpSettings { roots: Roots::Pem(root.into()), ..HttpSettings::default() }
}

/// What the scripted CA does with one request.
enum Reply {
    Answer(u16, &'static [(&'static str, &'static str)], String),
    /// Half of an answer, then the line goes dead.
    Cut(&'static str),
    HangUp,
    Silence,
}

type Script = dyn Fn(&str, &str, usize) -> Reply + Send + Sync;

/// A CA on loopback. The script sees method, path and how often that path was asked; `{ca}` in replies
/// stands for its base URL.
struct Scripted {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    async fn start(script: impl Fn(&str, &str, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (script, base, log): (Arc<Script>, _, _) = (Arc::new(script), url.clone(), asked.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, script.clone(), base.clone(), log.clone()));
            }
        });
        Scripted { url, asked }
    }

    fn count(&self, what: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|a| *a == what).count()
    }

    fn client(&self) -> InstantAcme {
        self.client_with_patience(Duration::from_secs(20))
    }

    fn client_with_patience(&self, request_timeout: Duration) -> InstantAcme {
        let settings = HttpSettings { request_timeout, ..settings() };
        InstantAcme::new(&format!("{}/directory", self.url), &settings, &Env::real()).unwrap()
    }

    fn account(&self) -> AccountRef {
        let key = new_account_key(&Hand::new(Moment::default(), 1).env()).unwrap();
        AccountRef { url: AccountUrl(format!("{}/account/1", self.url)), key }
    }
}

async fn serve(mut stream: TcpStream, script: Arc<Script>, base: String, log: Arc<Mutex<Vec<String>>>) -> Option<()> {
    let mut request = Vec::new();
    let head = loop {
        if let Some(end) = request.windows(4).position(|w| w == b"\r\n\r\n") {
            break String::from_utf8(request[..end].to_vec()).ok()?;
        }
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
    };
    let length = head.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    let whole = head.len() + 4 + length.and_then(|l| l.parse::<usize>().ok()).unwrap_or(0);
    while request.len() < whole {
        stream.read_buf(&mut request).await.ok()?;
    }
    let mut words = head.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let line = format!("{method} {path}");
    let times = log.lock().map(|mut l| (l.push(line.clone()), l.iter().filter(|a| **a == line).count())).ok()?.1;
    let reply = match (method.as_str(), path.as_str()) {
        ("GET", "/directory") => Reply::Answer(200, &[], directory(&base)),
        ("HEAD", "/nonce") => Reply::Answer(200, &[], String::new()),
        _ => script(&method, &path, times),
    };
    let (status, headers, body) = match reply {
        Reply::Answer(status, headers, body) => (status, headers, body.replace("{ca}", &base)),
        Reply::Cut(location) => {
            let head = format!("HTTP/1.1 201 Created\r\nlocation: {base}{location}\r\ncontent-length: 900\r\n\r\n{{\"sta");
            stream.write_all(head.as_bytes()).await.ok()?;
            return None;
        }
        Reply::HangUp => return None,
        Reply::Silence => {
            // Until the client has gone, which ends the reading one way or the other.
            let _ = stream.read_buf(&mut request).await;
            return None;
        }
    };
    let mut text =
        format!("HTTP/1.1 {status} X\r\nreplay-nonce: bm9uY2U\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text += &format!("{name}: {}\r\n", value.replace("{ca}", &base));
    }
    if method == "HEAD" {
        text = text.replace("content-length: 0\r\n", "");
    }
    stream.write_all(format!("{text}\r\n{body}").as_bytes()).await.ok()
}

fn directory(base: &str) -> String {
    json!({
        "newNonce": format!("{base}/nonce"), "newAccount": format!("{base}/new-account"), "newOrder": format!("{base}/new-order"),
        "renewalInfo": format!("{base}/ari"), "meta": {"caaIdentities": ["ca.test"]},
    })
    .to_string()
}

fn order(status: &str) -> Value {
    json!({"status": status, "authorizations": [], "finalize": "{ca}/finalize"})
}

fn problem(kind: &str) -> String {
    json!({"type": format!("urn:ietf:params:acme:error:{kind}"), "detail": "scripted", "extra": [1, 2]}).to_string()
}

fn names() -> Vec<Hostname> {
    vec![Hostname::trusted("support.acme.test")]
}

const AT: &[(&str, &str)] = &[("location", "{ca}/order/1")];

async fn new_order(
    script: impl Fn(&str, &str, usize) -> Reply + Send + Sync + 'static,
) -> (Scripted, Result<PlacedOrder, AcmeError>) {
    let ca = Scripted::start(script).await;
    let placed = ca.client().new_order(&ca.account(), &names(), None).await;
    (ca, placed)
}

#[tokio::test]
async fn a_limit_keeps_its_document_whole_and_its_time() {
    let (ca, refused) = new_order(|_, _, _| Reply::Answer(429, &[("retry-after", "599")], problem("rateLimited"))).await;
    let refused = refused.unwrap_err();
    assert_eq!((refused.class(), refused.status), (Class::RetryAt(Some(Duration::from_secs(599))), Some(429)));
    assert_eq!(refused.problem.unwrap().json()["extra"], json!([1, 2]));
    assert_eq!(ca.count("POST /new-order"), 1);
}

#[tokio::test]
async fn a_new_order_without_answer_is_lost_and_never_sent_twice() {
    for quiet in [
        || Reply::Silence,
        || Reply::HangUp,
        || Reply::Answer(500, &[], "oops".to_owned()),
        || Reply::Answer(201, &[], order("pending").to_string()),
    ] {
        let ca = Scripted::start(move |_, _, _| quiet()).await;
        let lost = ca.client_with_patience(Duration::from_secs(1)).new_order(&ca.account(), &names(), None).await;
        assert_eq!(lost.map_err(|e| e.class()), Err(Class::Lost));
        assert_eq!(ca.count("POST /new-order"), 1);
    }
}

#[tokio::test]
async fn an_order_that_was_made_keeps_its_url_whatever_else_came() {
    for reply in [|| Reply::Cut("/order/1"), || Reply::Answer(201, AT, "<html>".to_owned())] {
        let (ca, placed) = new_order(move |_, _, _| reply()).await;
        assert_eq!(placed.unwrap(), PlacedOrder { url: format!("{}/order/1", ca.url), replaces: false, order: None });
    }
}

#[tokio::test]
async fn a_ca_that_does_not_echo_what_is_replaced_has_still_made_the_order() {
    for (echo, taken) in [(None, false), (Some("aYhb.AIdl"), true)] {
        let ca = Scripted::start(move |_, _, _| {
            let mut body = order("ready");
            body["replaces"] = json!(echo);
            Reply::Answer(201, AT, body.to_string())
        })
        .await;
        let placed = ca.client().new_order(&ca.account(), &names(), Some("aYhb.AIdl")).await.unwrap();
        assert_eq!((placed.url, placed.replaces), (format!("{}/order/1", ca.url), taken));
        assert_eq!(placed.order.unwrap().status, OrderStatus::Ready);
        assert_eq!(ca.count("POST /new-order"), 1);
    }
    let ca = Scripted::start(|_, _, _| Reply::Silence).await;
    let refused = ca.client().new_order(&ca.account(), &names(), Some("no id")).await.unwrap_err();
    assert!(matches!(refused.kind, Kind::Ours(_)) && ca.count("POST /new-order") == 0, "{refused}");
}

#[tokio::test]
async fn refused_nonces_beyond_the_librarys_tries_repeat_the_step() {
    let (ca, refused) = new_order(|_, _, _| Reply::Answer(400, &[], problem("badNonce"))).await;
    let refused = refused.unwrap_err();
    assert_eq!((refused.class(), refused.acted_on, ca.count("POST /new-order")), (Class::StepAgain, false, 3));
}

#[tokio::test]
async fn no_nonce_is_asked_for_while_answers_bring_them() {
    let ca = Scripted::start(|_, path, times| match (path, times) {
        ("/order/2", 1) => Reply::Answer(400, &[], problem("badNonce")),
        _ => Reply::Answer(200, &[], order("processing").to_string()),
    })
    .await;
    let (client, account) = (ca.client(), ca.account());
    for n in 1..=3 {
        let view = client.order(&account, &format!("{}/order/{n}", ca.url)).await.unwrap();
        assert_eq!(view.status, OrderStatus::Processing);
    }
    assert_eq!((ca.count("POST /order/2"), ca.count("HEAD /nonce")), (2, 0), "the directory's own answer brought the first");
}

/// However many come at once: they wait for each other's answers rather than ask a CA for more nonces than it gives.
#[tokio::test]
async fn many_calls_at_once_share_few_nonces() {
    const CALLS: usize = 40;
    let ca = Scripted::start(|_, _, _| Reply::Answer(200, &[], order("processing").to_string())).await;
    let (client, account) = (ca.client(), ca.account());
    let url = format!("{}/order/1", ca.url);
    let calls: Vec<_> = (0..CALLS).map(|_| client.order(&account, &url)).collect();
    let views = futures::future::join_all(calls).await;
    assert!(views.iter().all(Result::is_ok), "{views:?}");
    let asked = ca.count("HEAD /nonce");
    assert_eq!(ca.count("POST /order/1"), CALLS);
    assert!(asked < CALLS / 2, "{asked} nonces were asked for");
}

#[tokio::test]
async fn answers_that_are_no_json_are_judged_by_their_status() {
    let ca = Scripted::start(|_, path, _| match path {
        "/order/gone" => Reply::Answer(404, &[], String::new()),
        "/order/wall" => Reply::Answer(403, &[("retry-after", "soon")], "<html>blocked".to_owned()),
        "/order/bad-request" => Reply::Answer(400, &[], "<html>".to_owned()),
        "/order/down" => Reply::Answer(502, &[("retry-after", "7")], "<html>".to_owned()),
        "/order/huge" => Reply::Answer(200, &[], " ".repeat(300 * 1024)),
        _ => Reply::Answer(200, &[], "null".to_owned()),
    })
    .await;
    let (client, account) = (ca.client(), ca.account());
    for (path, class, kind) in [
        ("gone", Class::Missing, Kind::Refused),
        ("wall", Class::RetryAt(None), Kind::Refused),
        ("bad-request", Class::RetryAt(None), Kind::Refused),
        ("down", Class::RetryAt(Some(Duration::from_secs(7))), Kind::Failed),
        ("huge", Class::RetryAt(None), Kind::Unanswered),
        ("null", Class::RetryAt(None), Kind::Garbled),
    ] {
        let failed = client.order(&account, &format!("{}/order/{path}", ca.url)).await.unwrap_err();
        assert_eq!((failed.class(), failed.kind.clone()), (class, kind), "{path}: {failed}");
        assert!(std::error::Error::source(&failed).is_some(), "{path}");
    }
    assert_eq!(ca.count("GET /directory"), 1, "the account is loaded once");
}

#[tokio::test]
async fn finalize_reads_first_and_hands_in_at_most_once() {
    for (status, sent, outcome) in [
        ("ready", 1, Err(Class::StepAgain)),
        ("processing", 0, Ok(OrderStatus::Processing)),
        ("valid", 0, Ok(OrderStatus::Valid)),
        ("invalid", 0, Err(Class::GiveUp)),
        ("pending", 0, Err(Class::RetryAt(Some(Duration::from_secs(3))))),
    ] {
        let ca = Scripted::start(move |_, path, _| match path {
            "/order/1" => Reply::Answer(200, &[("retry-after", "3")], order(status).to_string()),
            _ => Reply::Answer(403, &[], problem("orderNotReady")),
        })
        .await;
        let finalized = ca.client().finalize(&ca.account(), &format!("{}/order/1", ca.url), b"csr").await;
        assert_eq!(finalized.map(|v| v.status).map_err(|e| e.class()), outcome, "{status}");
        assert_eq!(ca.count("POST /finalize"), sent, "{status}");
    }
}

#[tokio::test]
async fn a_challenge_is_announced_while_pending_only() {
    for (status, sent) in [("pending", 1), ("processing", 0), ("invalid", 0)] {
        let ca = Scripted::start(move |_, path, _| match path {
            "/order/1" => {
                let mut body = order("pending");
                body["authorizations"] = json!(["{ca}/authz/1"]);
                Reply::Answer(200, &[], body.to_string())
            }
            "/authz/1" => {
                let challenge = json!({"type": "http-01", "url": "{ca}/challenge/1", "token": "t0k-en", "status": status});
                let body = json!({"status": "pending", "identifier": {"type": "dns", "value": "a.test"}, "challenges": [challenge]});
                Reply::Answer(200, &[("retry-after", "2")], body.to_string())
            }
            // Taken, and failed at once: the next read tells.
            _ => {
                let error = json!({"type": "urn:ietf:params:acme:error:connection"});
                let body = json!({"type": "http-01", "url": "{ca}/challenge/1", "token": "t", "status": "invalid", "error": error});
                Reply::Answer(200, &[], body.to_string())
            }
        })
        .await;
        let (client, account, url) = (ca.client(), ca.account(), format!("{}/order/1", ca.url));
        let read = client.authorizations(&account, &url).await.unwrap().remove(0);
        assert_eq!(read.retry_after, Some(Duration::from_secs(2)));
        let challenge = read.http01.unwrap();
        client.announce(&account, &url, &challenge.url).await.unwrap();
        assert_eq!(ca.count("POST /challenge/1"), sent, "{status}");
        let other = client.announce(&account, &url, "http://127.0.0.1:1/other").await.unwrap_err();
        assert!(matches!(other.kind, Kind::Ours(_)), "{other}");
    }
}

#[tokio::test]
async fn a_chain_is_downloaded_from_a_valid_order_only() {
    for (status, outcome) in [
        ("valid", Ok("PEM".to_owned())),
        ("processing", Err(Class::RetryAt(Some(Duration::from_secs(9))))),
        ("invalid", Err(Class::GiveUp)),
    ] {
        let ca = Scripted::start(move |_, path, _| match path {
            "/order/1" => {
                let mut body = order(status);
                body["certificate"] = json!("{ca}/certificate/1");
                Reply::Answer(200, &[("retry-after", "9")], body.to_string())
            }
            _ => Reply::Answer(200, &[], "PEM".to_owned()),
        })
        .await;
        let chain = ca.client().certificate(&ca.account(), &format!("{}/order/1", ca.url)).await;
        assert_eq!(chain.map_err(|e| e.class()), outcome, "{status}");
    }
}

#[tokio::test]
async fn registering_answers_with_the_account_and_sets_contacts() {
    let ca = Scripted::start(|_, path, _| match path {
        "/new-account" => Reply::Answer(200, &[("location", "{ca}/account/7")], "{}".to_owned()),
        _ => Reply::Answer(200, &[], json!({"status": "valid"}).to_string()),
    })
    .await;
    let url = ca.client().register(&ca.account().key, &["ops@saas.example".to_owned()]).await.unwrap();
    assert_eq!(url, AccountUrl(format!("{}/account/7", ca.url)));
    assert_eq!((ca.count("POST /new-account"), ca.count("POST /account/7")), (1, 1));
}

#[tokio::test]
async fn nobody_listens() {
    let ca = Scripted::start(|_, _, _| Reply::Silence).await;
    let account = ca.account();
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/directory", free.local_addr().unwrap());
    drop(free);
    let client = InstantAcme::new(&url, &settings(), &Env::real()).unwrap();
    let failed = client.new_order(&account, &names(), None).await.unwrap_err();
    assert_eq!((failed.class(), failed.kind, failed.acted_on), (Class::RetryAt(None), Kind::Unreached, false));
    assert!(client.directory().await.is_err());
}

#[tokio::test]
async fn what_cannot_be_asked_is_said_before_asking() {
    assert!(InstantAcme::new("http://acme.example/directory", &settings(), &Env::real()).is_err());
    let ca = Scripted::start(|_, _, _| Reply::Silence).await;
    let no_key = AccountRef { key: Secret::new(vec![1, 2, 3]), ..ca.account() };
    let failed = ca.client().new_order(&no_key, &names(), None).await.unwrap_err();
    assert_eq!((failed.class(), failed.kind), (Class::WaitFor(Actor::Platform), Kind::Ours("invalid key bytes".to_owned())));
    assert_eq!(ca.client().directory().await.unwrap().caa_identities, ["ca.test"]);
}

const WINDOW: &str = r#"{"suggestedWindow": {"start": "2027-03-15T00:00:00Z", "end": "2027-03-17T00:00:00Z"}, "explanationURL": "https://ca.test/why"}"#;

#[tokio::test]
async fn a_renewal_window_is_asked_for_under_the_name_of_its_certificate() {
    let ca = Scripted::start(|_, path, _| match path {
        "/ari/aYhb.AIdl" => Reply::Answer(200, &[("retry-after", "21600")], WINDOW.to_owned()),
        _ => Reply::Answer(404, &[], problem("malformed")),
    })
    .await;
    let client = ca.client();
    let advice = client.renewal_info("aYhb.AIdl").await.unwrap().unwrap();
    assert_eq!(advice.retry_after, Some(Duration::from_secs(21_600)));
    assert_eq!(
        (advice.window.end.since(advice.window.start), advice.explanation.as_deref()),
        (Duration::from_secs(172_800), Some("https://ca.test/why"))
    );
    let unknown = client.renewal_info("aYhb.other").await.unwrap_err();
    assert_eq!((unknown.status, unknown.acted_on), (Some(404), false));
    client.renewal_info("aYhb.AIdl").await.unwrap();
    assert_eq!(ca.count("GET /directory"), 1, "the directory is asked once");
}

#[tokio::test]
async fn a_renewal_window_that_does_not_come_is_told_with_its_time() {
    for (status, wait) in [(503, Some(600)), (500, None), (200, None)] {
        let ca = Scripted::start(move |_, _, _| {
            let headers: &'static [(&str, &str)] = if wait.is_some() { &[("retry-after", "600")] } else { &[] };
            Reply::Answer(status, headers, "<html>down</html>".to_owned())
        })
        .await;
        let failed = ca.client().renewal_info("aYhb.AIdl").await.unwrap_err();
        assert_eq!(
            (failed.status, failed.retry_after.map(|d| d.as_secs()), failed.acted_on),
            (Some(status), wait, false),
            "{failed}"
        );
        assert!(!failed.to_string().contains("<html"), "{failed}");
    }
    for quiet in [|| Reply::HangUp, || Reply::Cut("/order/1"), || Reply::Silence] {
        let ca = Scripted::start(move |_, _, _| quiet()).await;
        let failed = ca.client_with_patience(Duration::from_secs(1)).renewal_info("aYhb.AIdl").await.unwrap_err();
        assert!(!failed.acted_on && failed.is_of_the_ca(), "{failed}");
    }
}
