//! Claims that meet: who is told what of whom, and when.

use std::time::Duration;

use nameplate::model::id::DomainId;
use nameplate::store::sql;
use serde_json::json;

use crate::support::met::{HOUR, Met};
use crate::support::rig::Rig;
use crate::support::web::Web;

const NAME: &str = "shop.acme.test";
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Until the claimant's own record is there a held name looks exactly like a free one; then both are told, once.
#[tokio::test]
async fn a_held_name_is_told_of_only_to_whom_has_proved_it() {
    let met = Met::new(1, NAME).await;
    let rig = &met.rig;
    let before = rig.events(&met.holder).await;
    rig.pass(2 * HOUR).await;
    assert_eq!(rig.events(&met.next).await, ["claimed", "evidence_changed"], "{}", rig.story(&met.next).await);
    assert_eq!(rig.events(&met.holder).await, before, "the holder hears of no claim that has proved nothing");
    met.txt(&met.next, true).await;
    rig.pass(2 * HOUR).await;
    assert_eq!(met.told(&met.next, "held_elsewhere").await, 1);
    assert_eq!(met.told(&met.holder, "proved_elsewhere").await, 1, "{}", rig.story(&met.holder).await);
    rig.pass(5 * DAY).await;
    assert_eq!((met.state(&met.holder).await.as_str(), met.state(&met.next).await.as_str()), ("live", "awaiting_dns"));
    assert_eq!(met.told(&met.next, "held_elsewhere").await, 1);
    assert_eq!(met.told(&met.holder, "proved_elsewhere").await, 1);
    met.nobody_is_named().await;
    rig.check_invariants().await;
}

/// Whoever holds a name above one that another tenant has proved hears of it, once, by hostname.
#[tokio::test]
async fn a_parents_holder_hears_of_a_claim_beneath() {
    let rig = Rig::new(12).await;
    let (a, b) = (rig.tenant("acme").await, rig.tenant("beta").await);
    rig.zones.add("acme.test. 60 IN A 192.0.2.80").unwrap();
    let apex = rig.claim(&a, "acme.test").await;
    let parent = rig.claim(&a, "support.acme.test").await;
    let value = rig.value(&apex).await;
    rig.zones.add(&format!("_nameplate-challenge.acme.test. 60 IN TXT \"{value}\"")).unwrap();
    rig.publish(&parent, "support.acme.test").await;
    rig.until_active(&apex, HOUR).await;
    rig.until_active(&parent, HOUR).await;
    let own = rig.claim(&a, "y.support.acme.test").await;
    let other = rig.claim(&b, "x.support.acme.test").await;
    rig.publish(&own, "y.support.acme.test").await;
    rig.pass(2 * HOUR).await;
    for id in [&apex, &parent] {
        assert!(!rig.events(id).await.contains(&"claim_beneath".to_owned()), "nothing is proven, and own names are silent");
    }
    let value = rig.value(&other).await;
    let proof = format!("_nameplate-challenge.x.support.acme.test. 60 IN TXT \"{value}\"");
    rig.zones.add(&proof).unwrap();
    rig.pass(2 * HOUR).await;
    for id in [&apex, &parent] {
        let told: Vec<_> = rig.events(id).await.into_iter().filter(|k| k == "claim_beneath").collect();
        assert_eq!(told.len(), 1, "{}", rig.story(id).await);
        let stmt = sql("SELECT cause, detail FROM events WHERE domain_id = $1 AND kind = 'claim_beneath'").bind(id.as_str());
        let rows = rig.app.store.query(stmt).await.unwrap();
        let said = format!("{} {}", rows[0].text("cause").unwrap(), rows[0].text("detail").unwrap());
        assert!(said.contains("x.support.acme.test") && !said.contains("beta") && !said.contains(b.as_str()), "{said}");
    }
    rig.zones.remove(&proof).unwrap();
    rig.pass(6 * HOUR).await;
    rig.zones.add(&proof).unwrap();
    rig.pass(6 * HOUR).await;
    assert_eq!(rig.events(&parent).await.iter().filter(|k| *k == "claim_beneath").count(), 1, "once a claim");
    rig.check_invariants().await;
}

/// Whoever comes to hold a name hears of those beneath it that others hold by then.
#[tokio::test]
async fn a_new_holder_hears_of_what_is_held_beneath() {
    let rig = Rig::new(14).await;
    let (a, b) = (rig.tenant("acme").await, rig.tenant("beta").await);
    let names = ["x.support.acme.test", "y.support.acme.test", "support.acme.test"];
    let beneath = rig.claim(&b, names[0]).await;
    let own = rig.claim(&a, names[1]).await;
    let unproven = rig.claim(&b, "z.support.acme.test").await;
    let parent = rig.claim(&a, names[2]).await;
    for (id, name) in [&beneath, &own].into_iter().zip(names) {
        rig.publish(id, name).await;
        rig.until_active(id, HOUR).await;
    }
    rig.publish(&parent, names[2]).await;
    rig.until_active(&parent, HOUR).await;
    rig.pass(HOUR).await;
    let told = sql("SELECT detail FROM events WHERE kind = 'claim_beneath' AND domain_id = $1").bind(parent.as_str());
    let told: Vec<_> = rig.app.store.query(told).await.unwrap().iter().map(|r| r.text("detail").unwrap()).collect();
    assert_eq!(told, [r#"{"hostname":"x.support.acme.test"}"#]);
    let others = sql("SELECT count(*) AS n FROM notices WHERE domain_id <> $1").bind(parent.as_str());
    assert_eq!(rig.count(others).await, 0, "{}", rig.story(&unproven).await);
    rig.check_invariants().await;
}

/// A wildcard and an exact name are two names: each has a holder of its own, and neither hears of the other as its double.
#[tokio::test]
async fn wildcards_and_exact_names_are_held_separately() {
    let rig = Rig::new(13).await;
    let (a, b) = (rig.tenant("acme").await, rig.tenant("beta").await);
    let exact = rig.claim(&a, NAME).await;
    let wild = rig.claim(&b, "*.acme.test").await;
    rig.publish(&exact, NAME).await;
    rig.publish(&wild, "*.acme.test").await;
    rig.until_active(&exact, HOUR).await;
    let holding = |name: &str, id: &DomainId| {
        sql("SELECT count(*) AS n FROM holdings WHERE hostname = $1 AND domain_id = $2").bind(name).bind(id.as_str())
    };
    assert_eq!(rig.count(holding(NAME, &exact)).await, 1);
    assert_eq!(rig.count(holding("*.acme.test", &exact)).await, 0);
    let seen = rig.events(&exact).await;
    assert!(!seen.contains(&"proved_elsewhere".to_owned()), "{seen:?}");
    rig.check_invariants().await;
}

/// By no route and no word can a tenant tell a held name from a free one before its own record is seen.
#[tokio::test]
async fn a_held_name_looks_like_a_free_one_through_every_route() {
    let mut seen = Vec::new();
    for held in [false, true] {
        let web = Web::new(81).await;
        let (acme, _) = web.tenant("acme").await;
        let (beta, token) = web.tenant("beta").await;
        let holder = web.rig.claim(&acme, if held { NAME } else { "other.acme.test" }).await;
        web.rig.publish(&holder, if held { NAME } else { "other.acme.test" }).await;
        web.rig.until_active(&holder, HOUR).await;
        let made = web.api(&token, "POST", "/api/v1/domains", Some(json!({ "hostname": NAME }))).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let id: DomainId = made.json()["id"].as_str().unwrap().parse().unwrap();
        let (value, began) = (web.rig.value(&id).await, web.rig.env.now());
        // The same DNS in both worlds, so that what differs is what we say.
        let target = web.rig.domain_text(&holder, "target").await.unwrap();
        if !held {
            web.rig.zones.add(&format!("{NAME}. 60 IN CNAME {target}.")).unwrap();
            let record = format!("_nameplate-challenge.{NAME}. 60 IN TXT \"{}\"", web.rig.value(&holder).await);
            web.rig.zones.add(&record).unwrap();
        }
        web.rig.pass(HOUR).await;
        let cookie = web.admin(&beta).await;
        let mut told = format!("{} {}", made.status, made.body);
        for path in [
            format!("/api/v1/domains/{id}"),
            format!("/api/v1/domains/{id}/evidence"),
            format!("/api/v1/domains?hostname={NAME}"),
            format!("/api/v1/explain?hostname={NAME}"),
            format!("/api/v1/events?domain={id}"),
        ] {
            told += &web.api(&token, "GET", &path, None).await.body;
        }
        told += &web.page(&cookie, &format!("/domains/{id}")).await.body;
        told += &web.page(&cookie, "/domains").await.body;
        let due = web.rig.app.store.query(sql("SELECT due_at FROM domains WHERE id = $1").bind(id.as_str())).await.unwrap();
        let rhythm = due[0].moment("due_at").unwrap().since(began);
        told += &format!(" {rhythm:?} {:?}", web.rig.events(&id).await);
        for (what, with) in [(value.as_str(), "VALUE"), (id.as_str(), "ID"), (&web.rig.value(&holder).await, "THEIRS")] {
            told = told.replace(what, with);
        }
        seen.push(words(&told));
    }
    assert_eq!(seen[0], seen[1]);
}

/// What is said, without what is drawn anew in every world: times, tokens, positions.
fn words(text: &str) -> Vec<String> {
    let drawn = |c: char| c.is_ascii_digit();
    let split = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-' || c == '.'));
    split.filter(|w| !w.is_empty() && !w.contains(drawn)).map(str::to_owned).collect()
}
