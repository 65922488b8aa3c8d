//! B88: whatever fails, and however loudly it is logged, no secret is in a log, in the database's rows or in a panic.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use nameplate::config::{Config, Sources};
use nameplate::env::Env;
use nameplate::model::secret::Secret;
use nameplate::store::{OpenSettings, Store};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Row as _};

use crate::support::processes::{Fleet, Process, Said};
use crate::support::secrets;
use crate::support::stores::{Kind, TestStore, until};

const EAB: &[u8; 32] = b"the key that another CA gave us.";
const PASSWORD: &str = "the-mail-servers-password-in-full";

/// A configuration with every secret that one can have, and a mail server that takes no password.
fn with_secrets(text: String) -> String {
    let eab = format!("[issuers.sandbox]\neab_key_id = \"kid-1\"\neab_hmac = \"{}\"\n", URL_SAFE_NO_PAD.encode(EAB));
    let mail = format!("[mail]\nuser = \"nameplate\"\npassword = \"{PASSWORD}\"\n");
    let text = text.replace("[issuers.sandbox]\n", &eab).replace("[mail]\n", &mail);
    assert!(text.contains("eab_hmac") && text.contains(PASSWORD));
    format!("{text}\n[log]\nlevel = \"trace\"\n")
}

async fn done(fleet: &Fleet, serve: &Process, path: &str, body: Value) -> Value {
    match fleet.ask(serve.web, Method::POST, path, Some(&body)).await {
        Said::Done(said) => said,
        _ => panic!("{path} was not done: {}", fleet.log_end(serve)),
    }
}

/// All rows of all tables, as text.
async fn dump(store: &Store) -> String {
    let pool = store.postgres_pool().unwrap();
    let tables = "SELECT table_schema || '.' || quote_ident(table_name) AS name FROM information_schema.tables \
                  WHERE table_schema NOT IN ('pg_catalog', 'information_schema')";
    let mut text = String::new();
    for table in sqlx::query(tables).fetch_all(pool).await.unwrap() {
        let rows = format!("SELECT CAST(t AS TEXT) AS line FROM {} t", table.get::<String, _>("name"));
        for row in sqlx::query(AssertSqlSafe(rows)).fetch_all(pool).await.unwrap() {
            text.push_str(row.get("line"));
            text.push('\n');
        }
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn b88_no_secret_is_printed_or_stored_in_the_open_whatever_fails() {
    let (test, env) = (TestStore::blank(Kind::Postgres).await, Env::real());
    let (fleet, mut processes) = Fleet::new(test.url.clone(), &["acme".to_owned()], with_secrets, &env).await;
    let store = Store::open(&OpenSettings { url: test.url.clone(), connections: 2 }).await.unwrap();
    until("all processes", async || {
        for process in &processes {
            if fleet.ready(process).await.is_err() {
                return false;
            }
        }
        true
    })
    .await;

    // A receiver that is not there, a contact whose mail is not taken, a token, and a name.
    let hook = json!({ "url": "https://hooks.acme.test/in?key=of-the-receiver", "kinds": ["*"], "platform": true });
    let hook = done(&fleet, &processes[0], "/api/v1/webhooks", hook).await;
    let token = done(&fleet, &processes[0], "/api/v1/tokens", json!({ "label": "deployment", "tenant": "acme" })).await;
    let contact = json!({ "email": "dns@acme.test" });
    done(&fleet, &processes[0], "/api/v1/tenants/acme/contacts", contact).await;
    let name = "shop.acme.test";
    let domain = done(&fleet, &processes[0], "/api/v1/domains", json!({ "tenant": "acme", "hostname": name })).await;
    for record in domain["records"].as_array().unwrap() {
        let line = format!(
            "{}. 60 IN {} {}",
            record["name"].as_str().unwrap().trim_end_matches('.'),
            record["kind"].as_str().unwrap(),
            match record["kind"].as_str().unwrap() {
                "TXT" => format!("\"{}\"", record["value"].as_str().unwrap()),
                _ => record["value"].as_str().unwrap().to_owned(),
            }
        );
        fleet.outside.zones.add(&line).unwrap();
    }
    let check = format!("/api/v1/domains/{}/check", domain["id"].as_str().unwrap());
    fleet.ask(processes[0].web, Method::POST, &check, None).await;
    // What pushes to the edges dies in the middle of it, and so do the connections to the database.
    for serve in processes.iter_mut().take(2) {
        fleet.kill(serve).await;
    }
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::query(cut).execute(store.postgres_pool().unwrap()).await.unwrap();
    let pool = store.postgres_pool().unwrap();
    let active = format!("/api/v1/domains/{}", domain["id"].as_str().unwrap());
    // Edges look for a `serve` that went away again after half a minute at most.
    let (patient_until, mut asked) = (env.now() + Duration::from_secs(90), 0);
    while !matches!(fleet.ask(processes[0].web, Method::GET, &active, None).await, Said::Done(view) if view["active"] == true)
    {
        assert!(env.now() < patient_until, "the name is not active: {}", fleet.log_end(&processes[0]));
        if asked % 100 == 0 {
            // Leases of those that died, and waits after what failed, run out as minutes would let them.
            sqlx::query("UPDATE domains SET lease_until = 0, due_at = 0").execute(pool).await.unwrap();
            sqlx::query("UPDATE orders SET not_before = 0 WHERE not_before > 0").execute(pool).await.unwrap();
            sqlx::query("UPDATE issuers SET lease_until = 0, not_before = 0").execute(pool).await.unwrap();
        }
        asked += 1;
        env.sleep(Duration::from_millis(10)).await;
    }
    // Its contact is told of a removal.
    fleet.ask(processes[0].web, Method::DELETE, &active, None).await;
    let logs = || processes.iter().map(|process| fleet.log(process)).collect::<Vec<_>>().join("\n");
    let count = async |stmt: &'static str| sqlx::query_scalar::<_, i64>(stmt).fetch_one(pool).await.unwrap();
    until("a webhook to be tried", async || count("SELECT count(*) FROM deliveries WHERE attempts > 0").await > 0).await;
    until("mail to be written", async || count("SELECT count(*) FROM mail_items").await > 0).await;
    // What gathers mail has had its time.
    sqlx::query("UPDATE mail_items SET due_at = 0").execute(pool).await.unwrap();
    until("mail to be tried", async || count("SELECT count(*) FROM mail_items WHERE attempts > 0").await > 0).await;

    // A panic with keys in scope, and the whole configuration as a programmer would print it.
    let config = Config::read(Sources::none().file("nameplate.toml", fleet.config())).unwrap();
    let key = Secret::from(PASSWORD.to_owned());
    let panicked = std::thread::spawn(move || panic!("{key:?} {config:?} {config:#?}")).join().unwrap_err();
    let panicked = panicked.downcast_ref::<String>().unwrap();
    assert!(panicked.contains("issuers"), "{panicked}");

    let rows = dump(&store).await;
    assert!(rows.contains(name), "the dump has the rows");
    let mut printed = logs();
    assert!(printed.contains("TRACE") && printed.contains("DEBUG"));
    printed.push_str(panicked);
    let hook_secret = hook["secret"].as_str().unwrap();
    let hook_key = STANDARD.decode(hook_secret.trim_start_matches("whsec_")).unwrap();
    for text in [&printed, &rows] {
        for marker in [PASSWORD, hook_secret, token["token"].as_str().unwrap(), "PRIVATE KEY", "of-the-receiver"] {
            let line = text.lines().find(|line| line.contains(marker));
            assert_eq!(line, None, "{marker} was printed");
        }
        secrets::not_in(text, "the EAB key", EAB);
        secrets::not_in(text, "the mail server's password", PASSWORD.as_bytes());
        secrets::not_in(text, "what the mail server is told", format!("\0nameplate\0{PASSWORD}").as_bytes());
        secrets::not_in(text, "the webhook's key", &hook_key);
        for (what, bytes) in secrets::of(fleet.dir(), "edge-0", &test.url).await {
            secrets::not_in(text, &what, &bytes);
        }
    }
    store.close().await;
    drop((fleet, processes));
    test.remove().await;
}
