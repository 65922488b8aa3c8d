//! The button "misbehave" of the sandbox: pressed on the page, sent as JSON, and lived through by the whole product.

use nameplate::env::Env;
use nameplate::sandbox::ca::{Endpoint, Fault, Script, What, When};
use nameplate::sandbox::issuer::Choice;
use nameplate::sandbox::misbehave;
use nameplate::sandbox::ports::Ports;
use nameplate::sandbox::walk::Walk;
use nameplate::sandbox::world::{World, WorldSettings};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

/// The page and the API of a script of its own.
struct Beside {
    script: Script,
    url: String,
    http: reqwest::Client,
    _serving: AbortOnDropHandle<()>,
}

impl Beside {
    async fn new() -> Beside {
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let script = Script::seeded([3; 32]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = misbehave::router(script.clone());
        let serving = AbortOnDropHandle::new(tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }));
        Beside { script, url, http: reqwest::Client::builder().no_proxy().build().unwrap(), _serving: serving }
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    async fn page(&self) -> String {
        self.http.get(self.at("/ca")).send().await.unwrap().text().await.unwrap()
    }

    async fn press(&self, path: &str, body: &'static str) -> u16 {
        let form = "application/x-www-form-urlencoded";
        let sent = self.http.post(self.at(path)).header("content-type", form).body(body).send().await.unwrap();
        sent.status().as_u16()
    }
}

#[tokio::test]
async fn every_button_puts_its_fault_into_the_script() {
    let beside = Beside::new().await;
    let page = beside.page().await;
    assert!(page.contains("the CA behaves") && page.contains("Nothing went wrong so far"), "{page}");
    let words: Vec<&str> =
        page.split("name=\"preset\" value=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(words.len(), 16, "{words:?}");
    for word in &words {
        for body in [format!("preset={word}"), format!("preset={word}&always=true")] {
            let sent = beside.http.post(beside.at("/ca/misbehave"));
            let sent = sent.header("content-type", "application/x-www-form-urlencoded").body(body).send().await.unwrap();
            assert_eq!(sent.status().as_u16(), 200, "{word}: it leads back to the page");
        }
    }
    let entries = beside.script.entries();
    assert_eq!(entries.len(), 2 * words.len());
    assert_eq!(entries.iter().filter(|e| e.fault.when == When::Always).count(), words.len());
    for entry in &entries {
        let text = serde_json::to_string(&entry.fault).unwrap();
        assert_eq!(serde_json::from_str::<Fault>(&text).unwrap(), entry.fault, "what a button does, JSON can say: {text}");
    }
    assert!(beside.page().await.contains("Behave from now on"));
    let first = entries[0].no;
    assert_eq!(first, 1);
    assert_eq!(beside.press("/ca/behave", "no=1").await, 200);
    assert_eq!(beside.script.entries().len(), 2 * words.len() - 1);
    assert_eq!(beside.press("/ca/behave", "").await, 200);
    assert!(beside.script.entries().is_empty());
    assert_eq!(beside.press("/ca/misbehave", "preset=nothing-of-the-kind").await, 422);
    assert_eq!(beside.press("/ca/misbehave", "").await, 422);
}

#[tokio::test]
async fn faults_are_taken_listed_and_removed_as_json() {
    let beside = Beside::new().await;
    let send = async |body: String| {
        let sent = beside.http.post(beside.at("/ca/faults")).header("content-type", "application/json").body(body);
        let answer = sent.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let fault = json!({"at": "new-order", "when": {"next": 3}, "what": {"page": {"status": 502}}});
    let (status, body) = send(fault.to_string()).await;
    assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()["no"].as_u64()), (201, Some(1)));
    assert_eq!(beside.script.entries()[0].fault, Fault::once(Endpoint::NewOrder, What::page(502)).when(When::Next(3)));
    let deep = "[".repeat(100_000);
    for odd in ["", "null", "{}", r#"{"at":"moon","what":"frozen"}"#, r#"{"at":"order","what":"melted"}"#, &deep] {
        let (status, said) = send(odd.to_owned()).await;
        assert!((400..500).contains(&status), "{odd:.40}: {status} {said}");
    }
    assert_eq!(beside.script.entries().len(), 1, "nothing odd was taken");
    let listed: Value = beside.http.get(beside.at("/ca/faults")).send().await.unwrap().json().await.unwrap();
    assert_eq!(listed["faults"][0]["fault"]["at"], "new-order");
    assert_eq!((listed["happened"].as_array().unwrap().len(), listed["asked"]["new-order"].as_u64()), (0, Some(0)));
    let gone = async |path: &str| beside.http.delete(beside.at(path)).send().await.unwrap().status().as_u16();
    assert_eq!((gone("/ca/faults/1").await, gone("/ca/faults/1").await, gone("/ca/faults").await), (204, 404, 204));
}

/// The whole product, with a CA that is told to misbehave while it runs: the name is served all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_sandbox_is_told_to_misbehave_and_serves_all_the_same() {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let settings = WorldSettings { data: None, ca: Choice::Test, ports: Ports::free().await.unwrap() };
    let world = World::start(settings, &Env::real()).await.unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://{}/ca/faults", world.outside.provider);
    for fault in [
        json!({"at": "new-order", "when": {"next": 2}, "what": "bad_nonce"}),
        json!({"at": "order", "what": {"page": {"status": 503}}}),
        json!({"at": "finalize", "what": "drop_after"}),
        json!({"at": "certificate", "what": "cut_short"}),
    ] {
        assert_eq!(http.post(&url).json(&fault).send().await.unwrap().status(), 201, "{fault}");
    }
    let walk = Walk::new(&world).unwrap();
    walk.tenant().await.unwrap();
    let domain = walk.claim("support.acme.test").await.unwrap();
    walk.first_look(&domain).await.unwrap();
    walk.publish(&domain, &["TXT", "CNAME"]).unwrap();
    let asked = walk.check_now(&domain).await.unwrap();
    walk.proven(&domain, asked).await.unwrap();
    walk.certified(&domain).await.unwrap();
    walk.active(&domain).await.unwrap();
    let listed: Value = http.get(&url).send().await.unwrap().json().await.unwrap();
    assert_eq!(listed["faults"], json!([]), "all of it happened");
    assert_eq!(listed["happened"].as_array().unwrap().len(), 5);
    let page = http.get(format!("http://{}/ca", world.outside.provider)).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("cut_short") && page.contains("certificate"), "{page}");
    world.drain().await.unwrap();
}
