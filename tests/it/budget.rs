//! What the CAs still let us spend, as operators see it: by the API, on a page, and in the story of a name.

use std::time::Duration;

use nameplate::acme::{AcmeError, Call, Kind, ProblemDoc};
use nameplate::mint;
use nameplate::model::id::{DomainId, IssuerId};
use nameplate::model::limits::{self, LimitName};
use nameplate::store::issuers::{self, IssuerSeed};
use nameplate::store::sql;
use serde_json::{Value, json};

use crate::support::rig::Rig;
use crate::support::web::Web;

const LINK: &str = "https://portal.letsencrypt.org/sfe/v1/unpause?jwt=a.b&x=1";

fn limited(detail: &str, wait: Option<u64>) -> AcmeError {
    let problem = json!({"type": "urn:ietf:params:acme:error:rateLimited", "detail": detail, "status": 429});
    AcmeError {
        call: Call::NewOrder,
        kind: Kind::Refused,
        problem: ProblemDoc::new(problem),
        status: Some(429),
        retry_after: wait.map(Duration::from_secs),
        acted_on: false,
        cause: None,
    }
}

async fn ordered(web: &Web, slug: &str, name: &str) -> (DomainId, String) {
    let (tenant, token) = web.tenant(slug).await;
    let id = web.rig.claim(&tenant, name).await;
    web.rig.publish(&id, name).await;
    (id, token)
}

async fn limit_of(web: &Web, limit: &str, key: &str) -> Value {
    let budget = web.api(&web.operator, "GET", "/api/v1/budget", None).await.json();
    let limits = budget["items"][0]["limits"].as_array().unwrap().clone();
    limits.into_iter().find(|l| l["limit"] == limit && l["key"] == key).unwrap_or_else(|| panic!("no {limit}: {budget}"))
}

#[tokio::test]
async fn the_budget_is_told_to_operators_alone() {
    let web = Web::new(71).await;
    let (_, tenant) = web.tenant("acme").await;
    assert_eq!(web.api(&tenant, "GET", "/api/v1/budget", None).await.problem(), (403, "operator_needed".to_owned()));
    assert_eq!(
        web.api(&web.operator, "GET", "/api/v1/budget?issuer=x", None).await.problem(),
        (400, "bad_query".to_owned())
    );
    let budget = web.api(&web.operator, "GET", "/api/v1/budget", None).await.json();
    let one = &budget["items"][0];
    assert_eq!((&one["issuer"], &one["state"], &one["in_use"]), (&"main".into(), &"no_account".into(), &true.into()));
    assert_eq!(one["limits"].as_array().unwrap().len(), 1, "nothing was spent of any other: {budget}");
    let account = limit_of(&web, "orders_per_account", "account").await;
    assert_eq!((&account["left"], &account["burst"], &account["per_seconds"]), (&300.into(), &300.into(), &10_800.into()));
}

#[tokio::test]
async fn what_others_used_up_and_what_the_ca_paused_are_states_of_their_own() {
    let web = Web::new(72).await;
    web.rig.also_zone("beta.test");
    let crowded = "too many certificates (50) already issued for \"acme.test\"; <script>alert(1)</script> see https://letsencrypt.org/docs/rate-limits/.";
    web.rig.ca.refuse([limited(crowded, Some(86_400))]);
    let (crowded_id, tenant) = ordered(&web, "acme", "a.acme.test").await;
    web.rig.pass(Duration::from_secs(60)).await;
    let paused =
        format!("Your account is temporarily prevented from requesting certificates for b.beta.test. Please visit: {LINK}");
    web.rig.ca.refuse([limited(&paused, None)]);
    let (_, other) = ordered(&web, "beta", "b.beta.test").await;
    web.rig.pass(Duration::from_secs(60)).await;

    let row = limit_of(&web, "certificates_per_domain", "acme.test").await;
    assert_eq!(
        (&row["closed"], &row["left"], &row["waiting"]),
        (&"used_up_by_others".into(), &0.into(), &1.into()),
        "{row}"
    );
    assert_eq!(
        (&row["link"], &row["first_waiting"]),
        (&"https://letsencrypt.org/docs/rate-limits/".into(), &json!(["a.acme.test"]))
    );
    let row = limit_of(&web, "failures_in_a_row", "b.beta.test").await;
    assert_eq!((&row["closed"], &row["link"]), (&"paused_by_ca".into(), &LINK.into()), "{row}");

    let operator = web.signed_in_operator().await;
    let page = web.page(&operator, "/operator/budget").await.body;
    for part in ["Used up by others", "Paused by the CA", "a.acme.test", "unpause?jwt=a.b&#38;x=1", "&#60;script&#62;"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("<script>alert"));
    let fleet = web.page(&operator, "/operator").await.body;
    assert!(fleet.contains("main paused 1 name or more"), "{fleet}");
    let queue = web.page(&operator, "/operator/queue").await.body;
    assert!(queue.contains("waits for: certificates under one registered domain"), "{queue}");
    assert_eq!(web.page(&web.admin(&web.tenant("gamma").await.0).await, "/operator/budget").await.status, 404);

    let story = async |token: &str, name: &str| {
        let path = format!("/api/v1/explain?hostname={name}");
        web.api(token, "GET", &path, None).await.json()["claims"][0].clone()
    };
    let told = story(&tenant, "a.acme.test").await;
    assert_eq!(
        (&told["place"]["held"]["key"], &told["place"]["held"]["closed"]),
        (&"acme.test".into(), &"used_up_by_others".into())
    );
    assert!(told["next"].to_string().contains("others have used them up, not this claim"), "{told}");
    let to_operator = story(&web.operator, "b.beta.test").await;
    assert!(to_operator["next"].to_string().contains(LINK), "{to_operator}");
    let to_tenant = story(&other, "b.beta.test").await;
    assert!(to_tenant["next"].to_string().contains("paused b.beta.test"), "{to_tenant}");
    assert!(!to_tenant.to_string().contains("jwt="), "the page that lifts the pause is the operator's: {to_tenant}");
    assert!(web.rig.active_since(&crowded_id).await.is_none());
}

#[tokio::test]
async fn a_refusal_for_a_limit_that_is_not_configured_shows_with_who_waits() {
    // Set to 0, which says that the CA has none.
    let mut limits = limits::usual();
    limits.remove(&LimitName::CertificatesPerDomain);
    let web = Web::on(Rig::with_limits(73, "sqlite::memory:", limits).await, "").await;
    web.rig.ca.refuse([limited(
        "too many certificates (0) already issued for \"acme.test\"; see https://letsencrypt.org/docs/rate-limits/",
        Some(7_200),
    )]);
    let (id, tenant) = ordered(&web, "acme", "a.acme.test").await;
    web.rig.pass(Duration::from_secs(60)).await;
    let row = limit_of(&web, "certificates_per_domain", "acme.test").await;
    assert_eq!((&row["closed"], &row["configured"]), (&"used_up_by_others".into(), &false.into()), "{row}");
    assert_eq!((&row["waiting"], &row["first_waiting"]), (&1.into(), &json!(["a.acme.test"])), "{row}");
    assert!(row["said"].as_str().unwrap().contains("too many certificates (0)"), "{row}");
    let operator = web.signed_in_operator().await;
    for path in ["/operator/budget", "/operator"] {
        let page = web.page(&operator, path).await.body;
        assert!(page.contains("No such limit is configured, and the CA refuses for it:"), "{path}: {page}");
    }
    let queue = web.page(&operator, "/operator/queue").await.body;
    assert!(queue.contains("waits for: certificates under one registered domain"), "{queue}");
    let told = web.api(&tenant, "GET", "/api/v1/explain?hostname=a.acme.test", None).await.json();
    let place = &told["claims"][0]["place"];
    assert_eq!(
        (&place["held"]["key"], &place["held"]["closed"]),
        (&"acme.test".into(), &"used_up_by_others".into()),
        "{place}"
    );
    // It holds whoever comes under that domain, and nobody else; once its time is over it is told of no more.
    let asked = web.rig.ca.asked();
    let (late, _) = ordered(&web, "other", "b.acme.test").await;
    web.rig.also_zone("free.test");
    let (free, _) = ordered(&web, "free", "www.free.test").await;
    web.rig.until_active(&free, Duration::from_secs(600)).await;
    web.rig.pass(Duration::from_secs(3_600)).await;
    assert_eq!(web.rig.ca.asked() - asked, 1, "{}", web.rig.story(&late).await);
    assert_eq!(limit_of(&web, "certificates_per_domain", "acme.test").await["waiting"], 2);
    web.rig.until_active(&late, Duration::from_secs(3 * 3_600)).await;
    web.rig.until_active(&id, Duration::from_secs(3 * 3_600)).await;
    let budget = web.api(&web.operator, "GET", "/api/v1/budget", None).await.body;
    assert!(!budget.contains("certificates_per_domain"), "{budget}");
    web.rig.check_invariants().await;
}

#[tokio::test]
async fn an_issuer_without_an_account_and_one_that_was_removed_say_what_to_do() {
    let web = Web::new(74).await;
    let seed = IssuerSeed {
        name: "spare".into(),
        directory: "https://ca.spare.test/directory".into(),
        preference: 200,
        limits: limits::usual(),
        ..IssuerSeed::default()
    };
    let id = mint!(web.rig.env, IssuerId);
    let mut tx = web.rig.app.store.begin().await.unwrap();
    issuers::add(&mut tx, &seed, web.rig.env.now(), &id).await.unwrap();
    tx.commit().await.unwrap();
    let spare = async || {
        let budget = web.api(&web.operator, "GET", "/api/v1/budget", None).await.json();
        budget["items"].as_array().unwrap().iter().find(|one| one["issuer"] == "spare").unwrap().clone()
    };
    let told = async |words: &[&str]| {
        let page = web.page(&web.signed_in_operator().await, "/operator/budget").await.body;
        for words in words {
            assert!(page.contains(words), "{words} in {page}");
        }
    };
    let one = spare().await;
    assert_eq!((&one["state"], &one["has_account"]), (&"no_account".into(), &false.into()), "{one}");
    assert!(one["to_do"].as_str().unwrap().contains("nameplate issuer test spare"), "{one}");
    told(&["No account", "nameplate issuer test spare"]).await;
    web.rig
        .app
        .store
        .execute(sql("UPDATE issuers SET account_problem = 'cannot connect' WHERE name = 'spare'"))
        .await
        .unwrap();
    assert!(spare().await["account_problem"].as_str().unwrap().contains("cannot connect"));
    told(&["cannot connect", "what to mend says"]).await;
    let mut tx = web.rig.app.store.begin().await.unwrap();
    assert!(issuers::remove(&mut tx, &id, web.rig.env.now()).await.unwrap());
    tx.commit().await.unwrap();
    let one = spare().await;
    assert_eq!(one["state"], "not_in_use");
    assert!(
        one["to_do"].as_str().unwrap().contains("nameplate issuer add spare --directory https://ca.spare.test"),
        "{one}"
    );
    told(&["no longer in use", "nameplate issuer add spare"]).await;
}
