//! Alerts: once for a domain, certificate and threshold, one for a shared cause, over when it is over, in time for any lifetime.

use std::time::Duration;

use nameplate::app;
use nameplate::dns::world::{Fault, How};
use nameplate::model::id::DomainId;
use nameplate::model::issuer::IssuerNews;
use nameplate::store::retention::{self, Keep};
use nameplate::store::{alerts, issuer_health, issuers, pulse, sql};

use crate::support::probed;
use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};
use crate::support::told::Told;

const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3600);

/// The thresholds told of the first domain, in order.
fn thresholds(told: &Told) -> Vec<i64> {
    let of = told.receivers.taken();
    of.iter()
        .filter(|got| got.kind() == "certificate_ending")
        .map(|got| got.body["data"]["detail"]["threshold_percent"].as_i64().unwrap())
        .collect()
}

#[tokio::test]
async fn b91_certificates_of_every_lifetime_are_told_of_in_time_and_once_each() {
    for days in [90_u32, 45, 6] {
        let told = Told::new(1).await;
        let (tenant, ids) = told.live("acme", 1).await;
        told.webhook(Some(&tenant), &["certificate_ending", "certificate_safe"]).await;
        told.lives(&ids[0], days * DAY).await;
        let begun = told.rig.env.now();
        let step = days * DAY / 200;
        while told.rig.env.now() < begun + days * DAY + step {
            told.beat().await;
            told.rig.hand.advance(step);
        }
        assert_eq!(thresholds(&told), [25, 10, 3, 0], "{days} days");
        for (got, share) in told.receivers.taken().iter().zip([25_u32, 10, 3, 0]) {
            let left = (begun + days * DAY).since(got.at);
            let wanted = days * DAY * share / 100;
            assert!(
                left <= wanted && left + 2 * step + Duration::from_secs(60) >= wanted,
                "{days} days, {share} %: {left:?}"
            );
            assert_eq!(got.body["data"]["hostname"], "n0.acme.test");
        }
        // One open alert at any time: a tighter threshold takes the place of a looser one.
        let open = told
            .rig
            .count(sql("SELECT count(*) AS n FROM alerts WHERE resolved_at IS NULL AND domain_id IS NOT NULL"))
            .await;
        assert_eq!(open, 1);
    }
}

#[tokio::test]
async fn a_threshold_crossed_is_a_webhook_accepted_within_a_minute() {
    let told = Told::new(2).await;
    let (tenant, ids) = told.live("acme", 1).await;
    told.webhook(Some(&tenant), &["certificate_ending"]).await;
    told.lives(&ids[0], 90 * DAY).await;
    let crossed = told.rig.env.now() + 90 * DAY * 3 / 4;
    told.rig.hand.advance(90 * DAY * 3 / 4 - Duration::from_secs(30));
    told.beats(Duration::from_secs(120)).await;
    let got = told.receivers.taken();
    assert_eq!(got.len(), 1);
    assert!(got[0].at.since(crossed) < Duration::from_secs(60), "{:?}", got[0].at.since(crossed));
}

/// B92: 720 checks in a month below the threshold, several watchers, and the renewal in between.
#[tokio::test]
async fn b92_a_month_of_checks_below_the_threshold_is_one_alert_and_one_end() {
    let told = Told::new(3).await;
    let (tenant, ids) = told.live("acme", 1).await;
    told.webhook(Some(&tenant), &["certificate_ending", "certificate_safe"]).await;
    told.lives(&ids[0], 150 * DAY).await;
    told.rig.hand.advance(150 * DAY * 4 / 5);
    for _ in 0..720 {
        told.watch().await;
        told.watch().await;
        told.number().await;
        told.notifier.round().await.unwrap();
        told.rig.hand.advance(HOUR / 100);
    }
    assert_eq!(told.receivers.kinds(), ["certificate_ending"]);
    told.renewed(&ids[0], 90 * DAY).await;
    told.beats(HOUR).await;
    assert_eq!(told.receivers.kinds(), ["certificate_ending", "certificate_safe"]);
    assert_eq!(told.logged("certificate_ending").await, 1);
    assert_eq!(told.logged("certificate_safe").await, 1);
}

/// B92: renewed one second before the alert would have been raised, and one second before it would have been sent.
#[tokio::test]
async fn b92_an_alert_that_is_over_when_it_would_be_sent_is_not_sent_nor_is_its_end() {
    let told = Told::new(4).await;
    let (tenant, ids) = told.live("acme", 2).await;
    told.webhook(Some(&tenant), &["certificate_ending", "certificate_safe"]).await;
    for id in &ids {
        told.lives(id, 90 * DAY).await;
    }
    told.rig.hand.advance(90 * DAY * 4 / 5);
    told.renewed(&ids[0], 90 * DAY).await;
    assert_eq!(told.watch().await.raised, 2, "one of a domain, one that counts it");
    told.number().await;
    told.renewed(&ids[1], 90 * DAY).await;
    told.watch().await;
    told.number().await;
    told.notifier.round().await.unwrap();
    told.beats(HOUR).await;
    assert_eq!(told.receivers.tries().len(), 0);
    assert_eq!((told.deliveries("dropped").await, told.deliveries("pending").await), (2, 0));
}

/// B92: 5000 certificates end for one outage of the CA. Fewer here; the shape is the same.
#[tokio::test]
async fn b92_one_outage_of_the_ca_is_one_alert_with_a_count() {
    let told = Told::new(5).await;
    let (_, ids) = told.live("acme", 1).await;
    told.webhook(None, &["alert_raised", "alert_resolved"]).await;
    let store = &told.rig.app.store;
    // The others are copies of the first.
    let many = 400_i64;
    clone_domain(&told, ids[0].as_str(), many).await;
    told.touch_all().await;
    told.rig.hand.advance(90 * DAY);
    let issuer = issuers::list(store).await.unwrap().remove(0);
    for n in 0..9 {
        let now = told.rig.env.now() + HOUR * n;
        let failed = IssuerNews::Failed { said: "503".into(), told: None };
        store.execute(issuer_health::news(&issuer.id, &failed, None, now)).await.unwrap();
    }
    // The order that would have renewed each of them failed at the CA.
    store.execute(sql("UPDATE orders SET state = 'failed'")).await.unwrap();
    told.beats(HOUR).await;
    let raised: Vec<_> = told.receivers.taken();
    let about = |kind: &str| raised.iter().filter(|got| got.body["data"]["detail"]["kind"] == kind).count();
    assert_eq!(
        (about("certificates_ending"), about("issuer_unwell")),
        (1, 1),
        "{:?}",
        raised.iter().map(|g| &g.body).collect::<Vec<_>>()
    );
    let together = raised.iter().find(|got| got.body["data"]["detail"]["kind"] == "certificates_ending").unwrap();
    assert_eq!(together.body["data"]["detail"]["count"], many + 1);
    assert_eq!(together.body["data"]["detail"]["cause"], "ca/main");
    // The operator got one message, not one for each.
    let mails = told.mailbox.all();
    let to_operator: Vec<_> = mails.iter().filter(|m| m.to == crate::support::told::OPERATOR).collect();
    assert_eq!(to_operator.len(), 1, "{to_operator:?}");
    assert!(to_operator[0].text.contains("401 certificates"), "{}", to_operator[0].text);
    // All renewed: one end.
    store.execute(sql("UPDATE issuer_health SET failures = 0, open_until = 0")).await.unwrap();
    store.execute(sql("UPDATE domains SET certificate_id = NULL, certificate_until = NULL")).await.unwrap();
    told.touch_all().await;
    told.beats(HOUR).await;
    let ends = told.receivers.kinds().iter().filter(|kind| *kind == "alert_resolved").count();
    assert_eq!(ends, 2);
    assert!(alerts::open_of_platform(store).await.unwrap().is_empty());
}

/// Domains like this one, each live with a certificate and an order of its own.
async fn clone_domain(told: &Told, id: &str, many: i64) {
    let pool = told.rig.app.store.sqlite_pool().unwrap();
    let columns = |table: &'static str| async move {
        let names: Vec<String> =
            sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT name FROM pragma_table_info('{table}')")))
                .fetch_all(pool)
                .await
                .unwrap();
        names
    };
    for n in 0..many {
        let with = |text: &str| format!("substr({text}, 1, 28) || printf('%08x', {n})");
        for (table, key) in [("domains", "id"), ("certificates", "domain_id"), ("orders", "domain_id")] {
            let (mut into, mut from) = (Vec::new(), Vec::new());
            for name in columns(table).await {
                let value = match (table, name.as_str()) {
                    (_, "id" | "domain_id") | ("domains", "certificate_id" | "attempt_id") | (_, "order_id") => with(&name),
                    ("domains", "hostname") => format!("'c{n}.' || hostname"),
                    ("orders", "certificate_id") => "NULL".to_owned(),
                    _ => name.clone(),
                };
                // What points to rows that are not copied stays empty.
                let value = if table == "certificates" && name == "order_id" { "NULL".to_owned() } else { value };
                into.push(name);
                from.push(value);
            }
            let text = format!(
                "INSERT INTO {table} ({}) SELECT {} FROM {table} WHERE {key} = $1",
                into.join(", "),
                from.join(", ")
            );
            sqlx::query(sqlx::AssertSqlSafe(text)).bind(id).execute(pool).await.unwrap();
        }
    }
}

/// B92: for a day no resolver of ours answers. That is one alert to the operators, and nothing of any name; afterwards everybody is looked
/// at, and the alert is over.
#[tokio::test]
async fn b92_resolvers_that_do_not_answer_are_one_alert_and_no_trouble_of_a_name() {
    const NAMES: usize = 40;
    let told = Told::new(92).await;
    let rig = &told.rig;
    let tenant = rig.tenant("acme").await;
    for n in 0..NAMES {
        let name = format!("n{n}.acme.test");
        let id = rig.claim(&tenant, &name).await;
        rig.publish(&id, &name).await;
        rig.until_active(&id, HOUR).await;
    }
    while app::routine::batch(&rig.app).await.unwrap().more {}
    let hours = async |many: u32| {
        let mut looked = 0;
        for _ in 0..many * 6 {
            rig.hand.advance(HOUR / 6);
            loop {
                let batch = app::routine::batch(&rig.app).await.unwrap();
                looked += batch.looked - batch.unheard;
                assert_eq!(batch.differ, 0);
                if !batch.more {
                    break;
                }
            }
            rig.everything_once(&rig.new_worker()).await;
            rig.edge_follows().await;
            told.beat().await;
        }
        looked
    };
    let all = async |over: &str| {
        let stmt = format!("SELECT kind FROM alerts WHERE resolved_at IS {over}NULL ORDER BY kind");
        let rows = sqlx::query(sqlx::AssertSqlSafe(stmt)).fetch_all(rig.app.store.sqlite_pool().unwrap()).await.unwrap();
        rows.iter().map(|row| sqlx::Row::get::<String, _>(row, "kind")).collect::<Vec<_>>()
    };
    let of_names = async || rig.count(sql("SELECT count(*) AS n FROM events WHERE domain_id IS NOT NULL")).await;
    let before = of_names().await;
    let silence = Fault { name: String::new(), kind: None, how: How::Timeout, below: true };
    rig.zones.set_faults(vec![silence]);
    assert_eq!(hours(24).await, 0, "nobody was heard");
    assert_eq!((all("").await, all("NOT ").await), (vec!["resolvers_silent".to_owned()], vec![]));
    rig.zones.set_faults(Vec::new());
    let looked = hours(24).await;
    assert!((NAMES..=2 * NAMES + 2).contains(&looked), "everybody is looked at, and nobody again and again: {looked}");
    assert_eq!((all("").await, all("NOT ").await), (vec![], vec!["resolvers_silent".to_owned()]));
    assert_eq!(of_names().await, before, "nothing was told of a name");
}

#[tokio::test]
async fn b92_what_an_edge_serves_instead_is_told_of_too() {
    let told = Told::new(6).await;
    let (tenant, ids) = told.live("acme", 1).await;
    told.webhook(Some(&tenant), &["certificate_ending", "certificate_safe"]).await;
    told.lives(&ids[0], 90 * DAY).await;
    let old = told.rig.domain_text(&ids[0], "certificate_id").await.unwrap();
    told.rig.hand.advance(60 * DAY);
    told.renewed(&ids[0], 90 * DAY).await;
    told.rig.hand.advance(20 * DAY);
    told.beats(HOUR).await;
    assert_eq!(told.receivers.tries().len(), 0, "what is stored is good");
    serves_instead(&told, &ids[0], &old).await;
    told.beats(HOUR).await;
    let got = told.receivers.taken();
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].body["data"]["detail"]["certificate"], old.as_str());
    assert_eq!(got[0].body["data"]["detail"]["cause"], "platform/edge");
    probed::tells(&told.rig.app, "edge-1", &[]).await;
    told.beats(HOUR).await;
    assert_eq!(told.receivers.kinds(), ["certificate_ending", "certificate_safe"]);
}

/// The edge shows the old certificate of a domain where it should show the one that the domain has.
async fn serves_instead(told: &Told, id: &DomainId, old: &str) {
    let domain = async |column| told.rig.domain_text(id, column).await.unwrap();
    let (name, has) = (domain("hostname").await, domain("certificate_id").await);
    let shown = probed::stored(&told.rig.app, old).await;
    let seen = probed::seen_instead(&told.rig.env, &name, &has.parse().unwrap(), shown).await;
    probed::tells(&told.rig.app, "edge-1", &[seen]).await;
}

/// A certificate that was told of was replaced, and an edge shows it still: for its visitors nothing is over.
async fn an_old_one_on_an_edge(rig: Rig) {
    let told = Told::on(rig).await;
    let (tenant, ids) = told.live("acme", 1).await;
    told.webhook(Some(&tenant), &["certificate_ending", "certificate_safe"]).await;
    told.lives(&ids[0], 90 * DAY).await;
    let old = told.rig.domain_text(&ids[0], "certificate_id").await.unwrap();
    told.rig.hand.advance(70 * DAY);
    told.beats(HOUR).await;
    assert_eq!(told.receivers.kinds(), ["certificate_ending"]);
    told.renewed(&ids[0], 90 * DAY).await;
    serves_instead(&told, &ids[0], &old).await;
    told.beats(HOUR).await;
    assert_eq!(told.receivers.kinds(), ["certificate_ending"], "it is not renewed for whoever meets that edge");
    told.rig.hand.advance(12 * DAY);
    told.beats(HOUR).await;
    assert_eq!(thresholds(&told), [25, 10], "and it comes nearer to its end");
    probed::tells(&told.rig.app, "edge-1", &[]).await;
    told.beats(HOUR).await;
    assert_eq!(told.receivers.kinds(), ["certificate_ending", "certificate_ending", "certificate_safe"]);
    assert_eq!(told.receivers.taken()[2].body["data"]["detail"]["why"], "renewed");
}

#[tokio::test]
async fn what_an_edge_still_serves_is_not_told_as_renewed() {
    an_old_one_on_an_edge(Rig::new(58).await).await;
}

#[tokio::test]
async fn what_an_edge_still_serves_is_not_told_as_renewed_on_postgres() {
    let store = TestStore::blank(Kind::Postgres).await;
    an_old_one_on_an_edge(Rig::on(59, &store.url).await).await;
    store.remove().await;
}

/// B90: nothing fires for what a tenant took away, and whoever was told of it is told that it is over.
#[tokio::test]
async fn names_that_were_removed_alarm_nobody() {
    let told = Told::new(7).await;
    let (tenant, ids) = told.live("acme", 2).await;
    told.webhook(Some(&tenant), &["certificate_ending", "certificate_safe"]).await;
    for id in &ids {
        told.lives(id, 90 * DAY).await;
    }
    app::remove::remove(&told.rig.app, &ids[0], "tenant").await.unwrap();
    told.rig.hand.advance(90 * DAY * 4 / 5);
    told.beats(HOUR).await;
    assert_eq!(told.receivers.kinds(), ["certificate_ending"]);
    app::remove::remove(&told.rig.app, &ids[1], "tenant").await.unwrap();
    told.rig.hand.advance(30 * DAY);
    told.beats(HOUR).await;
    assert_eq!(told.receivers.kinds(), ["certificate_ending", "certificate_safe"]);
    assert_eq!(told.receivers.taken()[1].body["data"]["detail"]["why"], "let_go");
    assert!(alerts::open_of_platform(&told.rig.app.store).await.unwrap().iter().all(|a| a.kind != "certificates_ending"));
}

/// B91: the runner stopped altogether.
#[tokio::test]
async fn b91_workers_that_stopped_are_told_of_once_and_their_return_too() {
    let told = Told::new(8).await;
    told.webhook(None, &["alert_raised", "alert_resolved"]).await;
    let store = &told.rig.app.store;
    let beat = async || pulse::beat(store, pulse::SWEEP, told.rig.env.now()).await.unwrap();
    beat().await;
    told.beats(Duration::from_secs(300)).await;
    assert_eq!(told.receivers.tries().len(), 0);
    told.beats(3 * HOUR).await;
    assert_eq!(told.receivers.kinds(), ["alert_raised"]);
    assert_eq!(told.receivers.taken()[0].body["data"]["detail"]["kind"], "workers_stopped");
    for _ in 0..60 {
        beat().await;
        told.beat().await;
    }
    assert_eq!(told.receivers.kinds(), ["alert_raised", "alert_resolved"]);
    // A clock that jumps back makes no alert.
    store.execute(sql("UPDATE pulses SET at = $1").bind(told.rig.env.now() + DAY)).await.unwrap();
    told.beats(HOUR).await;
    assert_eq!(told.receivers.kinds().len(), 2);
}

/// A domain that is due and that nobody works on.
#[tokio::test]
async fn work_that_nobody_does_is_told_of() {
    let mut told = Told::new(9).await;
    told.workers_gone = true;
    let (_, ids) = told.live("acme", 1).await;
    told.webhook(None, &["alert_raised"]).await;
    let due = sql("UPDATE domains SET due_at = $2, lease_until = 0 WHERE id = $1").bind(ids[0].as_str());
    told.rig.app.store.execute(due.bind(told.rig.env.now())).await.unwrap();
    told.beats(Duration::from_secs(900)).await;
    let kinds: Vec<_> = told.receivers.taken().iter().map(|got| got.body["data"]["detail"]["kind"].clone()).collect();
    assert!(kinds.contains(&"work_overdue".into()), "{kinds:?}");
}

/// Two processes that look at the same time raise an alert once; so does one that dies in the middle.
#[tokio::test]
async fn whoever_dies_while_raising_leaves_nothing_and_the_next_one_raises() {
    for cut in 1..=3 {
        let told = Told::new(10).await;
        let (tenant, ids) = told.live("acme", 3).await;
        told.webhook(Some(&tenant), &["certificate_ending"]).await;
        for id in &ids {
            told.lives(id, 90 * DAY).await;
        }
        told.rig.hand.advance(90 * DAY * 4 / 5);
        told.rig.scissors.set(cut);
        tokio::select! {
            biased;
            _ = told.watch() => {}
            () = told.rig.scissors.reached() => {}
        }
        told.rig.scissors.set(0);
        told.beats(HOUR).await;
        let mut names: Vec<_> = told.receivers.taken().iter().map(|got| got.body["data"]["hostname"].to_string()).collect();
        names.sort();
        assert_eq!(names, ["\"n0.acme.test\"", "\"n1.acme.test\"", "\"n2.acme.test\""], "cut {cut}");
        assert_eq!(told.logged("certificate_ending").await, 3);
        assert_eq!(told.logged("alert_raised").await, 1);
    }
}

#[tokio::test]
async fn both_databases_tell_the_same_by_every_channel() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let told = Told::on(Rig::on(11, &test.url).await).await;
        let (tenant, ids) = told.live("acme", 2).await;
        told.webhook(Some(&tenant), &["certificate_ending", "certificate_safe"]).await;
        told.webhook(None, &["alert_raised", "alert_resolved"]).await;
        for id in &ids {
            told.lives(id, 90 * DAY).await;
        }
        told.rig.hand.advance(90 * DAY * 4 / 5);
        told.beats(HOUR).await;
        for id in &ids {
            told.renewed(id, 90 * DAY).await;
        }
        told.beats(HOUR).await;
        let mut kinds = told.receivers.kinds();
        kinds.sort();
        let wanted = [
            "alert_raised",
            "alert_resolved",
            "certificate_ending",
            "certificate_ending",
            "certificate_safe",
            "certificate_safe",
        ];
        assert_eq!(kinds, wanted, "{kind:?}");
        assert_eq!(told.mailbox.all().len(), 2, "{kind:?}: {:?}", told.mailbox.all());
        let store = &told.rig.app.store;
        assert!(alerts::list(store, &alerts::AlertFilter::default(), 9).await.unwrap().is_empty());
        let filter = alerts::AlertFilter { resolved: true, ..alerts::AlertFilter::default() };
        assert_eq!(alerts::list(store, &filter, 9).await.unwrap().len(), 3);
        let now = told.rig.env.now();
        let keep = Keep { deliveries: now + DAY, alerts: now + DAY };
        let pruned = retention::prune(store, keep, now).await.unwrap();
        assert!(pruned.done >= 6 && pruned.alerts == 3 && pruned.ended == 0, "{pruned:?}");
        store.close().await;
        test.remove().await;
    }
}
