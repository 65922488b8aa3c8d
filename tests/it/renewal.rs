//! Certificates follow one another for years: by the CA's window or by their own life, through outages and refusals, and never at the
//! cost of the one in use.

use std::time::Duration;

use nameplate::acme::{AcmeError, Kind};
use nameplate::model::renewal::{Advice, Window};
use nameplate::sandbox::ca::Windows;
use nameplate::store::sql;

use crate::support::renewals::{
    DAY, HOUR, NAME, certificates, days, down, live, live_names, number, refusal, renew_at, spent, untie,
};
use crate::support::rig::Rig;
use crate::support::stores::{Kind as Database, TestStore};

#[tokio::test]
async fn a_year_of_renewals_in_the_cas_windows_costs_one_order() {
    let rig = Rig::new(301).await;
    let id = live(&rig).await;
    let first = rig.serial_at_edge(NAME).unwrap();
    days(&rig, NAME, 64).await;
    let story = rig.story(&id).await;
    assert_eq!(certificates(&rig, &id).await, 2, "{story}");
    assert_ne!(rig.serial_at_edge(NAME).unwrap(), first, "{story}");
    let tells = rig.events(&id).await;
    let after: Vec<&str> = tells.iter().map(String::as_str).skip_while(|kind| *kind != "order_opened").collect();
    assert_eq!(
        after,
        [
            "order_opened",
            "key_ready",
            "order_placed",
            "challenge_published",
            "challenge_announced",
            "order_ready",
            "finalized",
            "certificate_stored",
            "renewed",
            "public_name_ok",
        ],
        "{story}"
    );
    days(&rig, NAME, 300).await;
    // 60 to 62 days each: five renewals in 364 days.
    assert_eq!(certificates(&rig, &id).await, 6, "{}", rig.story(&id).await);
    // The first one of a CA that nobody knows yet waits its turn like any other; it is found to cost nothing, as are all that follow.
    assert_eq!(rig.ca.ordered_at().len(), 1);
    let alive = "SELECT count(*) AS n FROM certificates WHERE domain_id = $1 AND sealed_key IS NOT NULL";
    assert_eq!(number(&rig, &id, alive).await, 1, "keys of those before are destroyed");
    let keys = "SELECT count(*) AS n FROM orders WHERE domain_id = $1 AND sealed_key IS NOT NULL";
    assert_eq!(number(&rig, &id, keys).await, 1);
    let free = "SELECT count(*) AS n FROM grants g JOIN orders o ON o.id = g.order_id WHERE o.domain_id = $1 AND g.free = 1";
    assert_eq!(number(&rig, &id, free).await, 4);
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM spends")).await, 0);
    // Asked about as often as it wants to be: four times a day.
    let polls = rig.ca.polls().len();
    assert!((1_300..1_600).contains(&polls), "{polls} polls");
}

#[tokio::test]
async fn without_windows_a_third_of_the_life_is_left_and_each_order_waits_its_turn() {
    let rig = Rig::new(302).await;
    rig.ca.windows(Windows::None);
    let id = live(&rig).await;
    let begin = rig.env.now();
    let at = renew_at(&rig, &id).await.since(begin);
    assert!(at > 55 * DAY && at <= 60 * DAY, "{at:?}");
    let before = spent(&rig).await;
    days(&rig, NAME, 61).await;
    assert_eq!(certificates(&rig, &id).await, 2, "{}", rig.story(&id).await);
    assert!(spent(&rig).await > before, "an order that the CA did not ask for is charged");
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM grants WHERE free = 1")).await, 0);
    let lanes = "SELECT count(*) AS n FROM orders WHERE domain_id = $1 AND purpose = 'renew' AND lane = 'renewal'";
    assert_eq!(number(&rig, &id, lanes).await, 1);
    let times = 6;
    days(&rig, NAME, times * 60).await;
    assert!(certificates(&rig, &id).await >= 7, "{}", rig.story(&id).await);
}

#[tokio::test]
async fn six_day_certificates_follow_one_another() {
    for windows in [Windows::Usual, Windows::None] {
        let rig = Rig::new(303).await;
        rig.ca.state().live_for(160 * HOUR, HOUR);
        rig.ca.windows(windows.clone());
        let id = live(&rig).await;
        days(&rig, NAME, 40).await;
        let many = certificates(&rig, &id).await;
        // 160 hours: every 106 hours by the window, every 72 to 80 by half of the life.
        let wanted = if matches!(windows, Windows::None) { 12..=15 } else { 9..=11 };
        assert!(wanted.contains(&many), "{many} certificates in 40 days with {windows:?}: {}", rig.story(&id).await);
    }
}

/// B43: nonsense, errors, and a window that moves with every poll.
#[tokio::test]
async fn b43_a_window_past_absurd_moving_or_unreachable_is_an_ordinary_day() {
    let rig = Rig::new(304).await;
    let now = rig.env.now();
    let advice = |start, end| Advice { window: Window { start, end }, explanation: None, retry_after: Some(6 * HOUR) };
    // Over before it began: one renewal when the certificate is a day old, and its successor has a window of its own.
    rig.ca.windows(Windows::Same(advice(now - 100 * DAY, now - 90 * DAY)));
    let id = live(&rig).await;
    days(&rig, NAME, 3).await;
    let many = certificates(&rig, &id).await;
    assert!((3..=4).contains(&many), "one a day at most: {many}");
    for windows in [
        Windows::Same(advice(now + 400 * DAY, now + 402 * DAY)),
        Windows::Same(advice(now + 40 * DAY, now + 39 * DAY)),
        Windows::Fail(Box::new(AcmeError { status: Some(500), kind: Kind::Failed, ..down() })),
        Windows::Fail(Box::new(refusal(404, "malformed"))),
    ] {
        rig.ca.windows(windows.clone());
        let (before, polls) = (certificates(&rig, &id).await, rig.ca.polls().len());
        days(&rig, NAME, 50).await;
        assert!(certificates(&rig, &id).await <= before + 1, "{windows:?}");
        let asked = rig.ca.polls().len() - polls;
        assert!(asked <= 50 * 4 + 10, "{asked} polls with {windows:?}");
        rig.ca.windows(Windows::None);
        days(&rig, NAME, 15).await;
        assert!(certificates(&rig, &id).await > before, "its own time comes: {windows:?}");
    }
    // A window that is always a week ahead never comes; the certificate is renewed nevertheless.
    let before = certificates(&rig, &id).await;
    for _ in 0..85 {
        let now = rig.env.now();
        rig.ca.windows(Windows::Same(advice(now + 7 * DAY, now + 8 * DAY)));
        days(&rig, NAME, 1).await;
    }
    assert_eq!(certificates(&rig, &id).await, before + 1, "{}", rig.story(&id).await);
}

/// B54 in small: the CA revokes what it issued, and the poll finds it; nobody has to do anything.
#[tokio::test]
async fn b54_a_window_pulled_forward_is_found_by_the_poll() {
    let rig = Rig::new(305).await;
    let id = live(&rig).await;
    days(&rig, NAME, 10).await;
    let serial = rig.serial_at_edge(NAME).unwrap();
    let now = rig.env.now();
    assert_eq!(rig.ca.state().revoke_all_of(NAME, now), 1);
    days(&rig, NAME, 1).await;
    let story = rig.story(&id).await;
    assert_ne!(rig.serial_at_edge(NAME).unwrap(), serial, "{story}");
    assert_eq!(rig.ca.ordered_at().len(), 1, "and it costs nothing: {story}");
    let opened = rig.app.store.query(sql("SELECT detail FROM events WHERE kind = 'order_opened'")).await.unwrap();
    assert!(opened[0].text("detail").unwrap().contains("https://ca.test/revoked"), "the explanation is kept");
    assert!(rig.events(&id).await.iter().filter(|kind| *kind == "renewed").count() == 1, "{story}");
}

#[tokio::test]
async fn a_ca_that_is_down_for_days_costs_tries_and_no_certificate() {
    let rig = Rig::new(306).await;
    let id = live(&rig).await;
    days(&rig, NAME, 59).await;
    rig.ca.windows(Windows::Fail(Box::new(down())));
    rig.ca.refuse(std::iter::repeat_n(down(), 100_000));
    let asked = rig.ca.asked();
    days(&rig, NAME, 5).await;
    let story = rig.story(&id).await;
    let tries = rig.ca.asked() - asked;
    assert!((3..=600).contains(&tries), "{tries} tries in five days: {story}");
    assert_eq!(certificates(&rig, &id).await, 1, "{story}");
    assert_eq!(rig.domain_text(&id, "standing").await.as_deref(), Some("renewal_retried"), "{story}");
    rig.ca.refuse_nothing();
    rig.ca.windows(Windows::Usual);
    days(&rig, NAME, 2).await;
    assert_eq!(certificates(&rig, &id).await, 2, "{}", rig.story(&id).await);
    assert_eq!(rig.domain_text(&id, "standing").await.as_deref(), Some("serving"));
}

#[tokio::test]
async fn a_refused_replaces_is_followed_by_a_plain_order() {
    for (status, kind) in
        [(409, "alreadyReplaced"), (400, "malformed"), (403, "unauthorized"), (409, "conflict"), (404, "malformed")]
    {
        let rig = Rig::new(307).await;
        let id = live(&rig).await;
        days(&rig, NAME, 59).await;
        let before = spent(&rig).await;
        rig.ca.refuse([refusal(status, kind)]);
        days(&rig, NAME, 4).await;
        let story = rig.story(&id).await;
        assert_eq!(certificates(&rig, &id).await, 2, "{status} {kind}: {story}");
        assert!(rig.events(&id).await.contains(&"replaces_refused".to_owned()), "{status} {kind}: {story}");
        assert!(spent(&rig).await > before, "{status} {kind}: the plain order is charged");
        assert_eq!(rig.count(sql("SELECT count(*) AS n FROM issuer_health WHERE halted IS NOT NULL")).await, 0, "{kind}");
        let failed = "SELECT count(*) AS n FROM orders WHERE domain_id = $1 AND state = 'failed'";
        assert_eq!(number(&rig, &id, failed).await, 0, "{status} {kind}: no try is lost");
    }
}

#[tokio::test]
async fn a_replaces_that_is_not_echoed_is_counted_like_any_order() {
    let rig = Rig::new(308).await;
    let id = live(&rig).await;
    days(&rig, NAME, 64).await;
    let honours = sql("SELECT honours_replaces AS n FROM issuers");
    assert_eq!((certificates(&rig, &id).await, rig.count(honours).await), (2, 1));
    rig.ca.overlook_replaces(true);
    let before = spent(&rig).await;
    days(&rig, NAME, 64).await;
    assert_eq!(certificates(&rig, &id).await, 3, "{}", rig.story(&id).await);
    assert!(spent(&rig).await > before, "it was charged after all");
    let honours = sql("SELECT honours_replaces AS n FROM issuers");
    assert_eq!(rig.count(honours).await, 0, "the next one waits its turn");
    assert_eq!(rig.ca.ordered_at().len(), 2);
    days(&rig, NAME, 64).await;
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM grants WHERE free = 1")).await, 1);
    assert_eq!(certificates(&rig, &id).await, 4);
}

/// Invariant 1: no renewal without an unbroken tie; with it back, the renewal that was due is made.
#[tokio::test]
async fn a_lost_tie_stops_renewals_and_a_half_of_it_does_not() {
    let rig = Rig::new(309).await;
    let id = live(&rig).await;
    let target = rig.domain_text(&id, "target").await.unwrap();
    days(&rig, NAME, 50).await;
    // The record is gone, the name still passes through the tenant's own host: that is the tie, and it holds.
    rig.unpublish_txt(&id, NAME).await;
    nameplate::app::check::check_now(&rig.app, &id, "tenant").await.unwrap();
    days(&rig, NAME, 14).await;
    let story = rig.story(&id).await;
    assert_eq!(rig.domain_text(&id, "tie").await.as_deref(), Some("weakened"), "{story}");
    assert_eq!(certificates(&rig, &id).await, 2, "{story}");
    // Now nothing is left, a day before the next renewal and for less time than lets the name go.
    let due = renew_at(&rig, &id).await;
    rig.pass_quickly(due.since(rig.env.now() + DAY)).await;
    rig.zones.remove(&format!("{NAME}. 60 IN CNAME {target}.")).unwrap();
    nameplate::app::check::check_now(&rig.app, &id, "tenant").await.unwrap();
    days(&rig, NAME, 5).await;
    assert!(rig.env.now() > due + 3 * DAY);
    let story = rig.story(&id).await;
    assert_eq!(rig.domain_text(&id, "tie").await.as_deref(), Some("lost"), "{story}");
    assert_eq!(certificates(&rig, &id).await, 2, "{story}");
    let opened = "SELECT count(*) AS n FROM orders WHERE domain_id = $1 AND purpose = 'renew'";
    assert_eq!(number(&rig, &id, opened).await, 1, "nothing was opened: {story}");
    rig.publish(&id, NAME).await;
    nameplate::app::check::check_now(&rig.app, &id, "tenant").await.unwrap();
    days(&rig, NAME, 2).await;
    assert_eq!(certificates(&rig, &id).await, 3, "{}", rig.story(&id).await);
}

#[tokio::test]
async fn a_tie_that_is_lost_while_a_renewal_is_under_way_ends_it() {
    let rig = Rig::new(310).await;
    let id = live(&rig).await;
    days(&rig, NAME, 59).await;
    rig.ca.refuse(std::iter::repeat_n(down(), 100_000));
    days(&rig, NAME, 4).await;
    let open = "SELECT count(*) AS n FROM orders WHERE domain_id = $1 AND state NOT IN ('issued', 'failed', 'lost')";
    assert_eq!(number(&rig, &id, open).await, 1);
    untie(&rig, &id, NAME).await;
    rig.ca.refuse_nothing();
    nameplate::app::check::check_now(&rig.app, &id, "tenant").await.unwrap();
    rig.pass(HOUR).await;
    let story = rig.story(&id).await;
    assert_eq!(number(&rig, &id, open).await, 0, "{story}");
    assert!(rig.events(&id).await.contains(&"renewal_stopped".to_owned()), "{story}");
    days(&rig, NAME, 5).await;
    assert_eq!(certificates(&rig, &id).await, 1, "{story}");
}

/// B51: one bad name keeps no other from its certificate.
#[tokio::test]
async fn b51_siblings_renew_although_one_name_went_away() {
    let rig = Rig::new(311).await;
    let names = live_names(&rig, 3).await;
    let ids: Vec<_> = names.iter().map(|(id, _)| id).collect();
    untie(&rig, ids[1], &names[1].1).await;
    rig.pass_quickly(66 * DAY).await;
    assert_eq!(certificates(&rig, ids[0]).await, 2);
    assert_eq!(certificates(&rig, ids[1]).await, 1, "{}", rig.story(ids[1]).await);
    assert_eq!(certificates(&rig, ids[2]).await, 2);
    rig.check_invariants().await;
}

/// B53: a certificate that has just become valid is not served while the one before it is good.
#[tokio::test]
async fn b53_the_old_certificate_is_served_until_slow_clocks_take_the_new_one() {
    for (backdated, waits) in [(HOUR, false), (Duration::ZERO, true)] {
        let rig = Rig::new(314).await;
        rig.ca.state().live_for(90 * DAY, backdated);
        rig.ca.windows(Windows::None);
        let id = live(&rig).await;
        let first = rig.serial_at_edge(NAME).unwrap();
        rig.pass_quickly(renew_at(&rig, &id).await.since(rig.env.now())).await;
        while certificates(&rig, &id).await == 1 {
            rig.turn().await;
            assert!(rig.env.now() < renew_at(&rig, &id).await + HOUR, "{}", rig.story(&id).await);
        }
        rig.pass(Duration::from_secs(120)).await;
        assert_eq!(rig.serial_at_edge(NAME).unwrap() == first, waits, "backdated by {backdated:?}");
        rig.check_invariants().await;
        rig.pass(HOUR).await;
        assert_ne!(rig.serial_at_edge(NAME).unwrap(), first, "{}", rig.story(&id).await);
        assert!(rig.events(&id).await.contains(&"renewed".to_owned()));
    }
}

#[tokio::test]
async fn renewals_on_postgres() {
    let store = TestStore::blank(Database::Postgres).await;
    let rig = Rig::on(315, &store.url).await;
    rig.ca.state().live_for(8 * DAY, HOUR);
    let id = live(&rig).await;
    days(&rig, NAME, 20).await;
    assert!(certificates(&rig, &id).await >= 4, "{}", rig.story(&id).await);
    assert_eq!(rig.ca.ordered_at().len(), 1);
    rig.ca.overlook_replaces(true);
    rig.ca.refuse([refusal(409, "alreadyReplaced")]);
    days(&rig, NAME, 14).await;
    assert!(certificates(&rig, &id).await >= 6, "{}", rig.story(&id).await);
    store.remove().await;
}

/// B28, months after the first order: a CAA record that forbids the next certificate is seen in time and told with the day on which that
/// matters, read again before the order, and costs none.
#[tokio::test]
async fn b28_a_permission_that_was_taken_away_is_told_with_the_date_and_ends_when_it_heals() {
    use nameplate::app::show;
    use nameplate::model::records::ApexRoute;
    let rig = Rig::new(318).await;
    let id = live(&rig).await;
    days(&rig, NAME, 5).await;
    let view = async || {
        // The edge was heard of before time went on.
        rig.edge_follows().await;
        show::domain(&rig.app.store, &ApexRoute::default(), &id, rig.env.now()).await.unwrap().unwrap()
    };
    let before = view().await.renewal.unwrap();
    assert!(
        !before.at_risk && before.sentence.contains("certificate authority asks for that between"),
        "{}",
        before.sentence
    );
    let hostile = "acme.test. 60 IN CAA 0 issue \"other.example\"";
    rig.zones.add(hostile).unwrap();
    // A day of routine looks, which only read.
    for _ in 0..24 * 6 {
        while nameplate::app::routine::batch(&rig.app).await.unwrap().more {}
        rig.pass_quickly(Duration::from_secs(600)).await;
    }
    let told = view().await;
    let (risk, day) = (told.renewal.clone().unwrap(), before.at.in_words());
    assert!(risk.at_risk && risk.sentence.starts_with(&format!("Renewal will fail on {day} unless")), "{}", risk.sentence);
    assert!(told.serving && told.sentence.starts_with("Visitors are served"), "{}", told.sentence);
    let consequences: Vec<String> = told.checks.iter().map(|c| c.consequence.clone()).collect();
    assert!(consequences.iter().any(|c| c.contains("will fail") && c.contains(&day)), "{consequences:?}");
    // Past its moment no order is spent on it, and the old certificate is served.
    let ordered = rig.ca.asked();
    days(&rig, NAME, 60).await;
    let waits = view().await.renewal.unwrap();
    assert!(waits.sentence.contains("waits for this"), "{}", waits.sentence);
    assert_eq!((rig.ca.asked(), certificates(&rig, &id).await), (ordered, 1), "{}", rig.story(&id).await);
    rig.zones.remove(hostile).unwrap();
    nameplate::app::check::check_now(&rig.app, &id, "tenant").await.unwrap();
    days(&rig, NAME, 1).await;
    assert_eq!(certificates(&rig, &id).await, 2, "{}", rig.story(&id).await);
    let after = view().await.renewal.unwrap();
    assert!(!after.at_risk && after.at > rig.env.now() + 50 * DAY, "{}", after.sentence);
}
