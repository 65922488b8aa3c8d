//! Many renewals at once: due in the same days, after an outage, or because the CA revokes all it issued.

use std::collections::HashMap;
use std::time::Duration;

use nameplate::model::dispatch::{Waiting, dispatch};
use nameplate::model::hostname::Hostname;
use nameplate::model::id::{CertificateId, DomainId, OrderId, TenantId};
use nameplate::model::ledger::{Limit, Spent};
use nameplate::model::moment::Moment;
use nameplate::model::order::Lane;
use nameplate::model::renewal::{Validity, own_moment};
use nameplate::sandbox::ca::Windows;
use nameplate::store::sql;

use crate::support::renewals::{DAY, HOUR, down, live_names, serials, spent};
use crate::support::rig::Rig;

/// What is due at once waits for the budget, at a pace that the budget has, and nothing expires. `each`: how long is waited between
/// two looks at what is left of the certificates.
async fn none_expires(rig: &Rig, names: &[(DomainId, String)], time: Duration, each: Duration) {
    let end = rig.env.now() + time;
    while rig.env.now() < end {
        rig.pass_quickly(each.min(end.since(rig.env.now()))).await;
        let over =
            sql("SELECT count(*) AS n FROM domains WHERE claim = 'live' AND certificate_until <= $1").bind(rig.env.now());
        assert_eq!(rig.count(over).await, 0, "one has expired by {}: {}", rig.env.now(), rig.story(&names[0].0).await);
    }
    rig.check_invariants().await;
}

/// The least time in which so many orders were counted, one after the other.
fn least_time_of(many: usize, ordered: &[Moment]) -> Duration {
    ordered.windows(many).map(|w| w[many - 1].since(w[0])).min().unwrap_or(Duration::MAX)
}

/// B63 in small: what is due at once without windows waits for the budget, and none expires.
#[tokio::test]
async fn b63_many_due_at_once_wait_for_the_budget_and_none_expires() {
    let rig = Rig::with_limit(312, "sqlite::memory:", Limit { burst: 10, per_secs: 36_000 }).await;
    rig.ca.overlook_replaces(true);
    rig.ca.state().live_for(8 * DAY, HOUR);
    rig.ca.windows(Windows::None);
    let names = live_names(&rig, 40).await;
    let orders = rig.ca.ordered_at().len();
    none_expires(&rig, &names, 10 * DAY, DAY / 2).await;
    let renewed = rig.ca.ordered_at().len() - orders;
    assert!(renewed >= 60, "{renewed} renewals of 40 names in ten days: {}", rig.story(&names[0].0).await);
    let least = least_time_of(12, &rig.ca.ordered_at());
    assert!(least >= Duration::from_secs(3_600), "twelve orders within {least:?}");
}

/// B63 with an outage: two hundred are due within a week, which the budget has room for one and a half times, the CA is away for six
/// hours when the first are, and none expires. The whole system, in the proportions of ten thousand under 300 orders in three hours.
#[tokio::test]
async fn b63_two_hundred_due_in_one_week_after_an_outage_of_six_hours() {
    let rig = Rig::with_limit(319, "sqlite::memory:", Limit { burst: 6, per_secs: 3 * 3_600 }).await;
    rig.ca.overlook_replaces(true);
    rig.ca.state().live_for(20 * DAY, HOUR);
    rig.ca.windows(Windows::None);
    let names = live_names(&rig, 200).await;
    let of = |text: &'static str| rig.count(sql(text));
    let (first, last) =
        (of("SELECT min(renew_at) AS n FROM renewals").await, of("SELECT max(renew_at) AS n FROM renewals").await);
    let (first, last) = (Moment::from_micros(first), Moment::from_micros(last));
    assert!(last.since(first) <= 7 * DAY, "due within {:?}", last.since(first));
    none_expires(&rig, &names, first.since(rig.env.now()), 2 * DAY).await;
    rig.ca.refuse(std::iter::repeat_n(down(), 100_000));
    none_expires(&rig, &names, 6 * HOUR, HOUR).await;
    rig.ca.refuse_nothing();
    let before = rig.ca.ordered_at().len();
    none_expires(&rig, &names, 9 * DAY, DAY).await;
    let renewed =
        of("SELECT count(*) AS n FROM (SELECT domain_id FROM certificates GROUP BY domain_id HAVING count(*) > 1) twice")
            .await;
    assert_eq!(renewed, 200, "all have their successors");
    let (all, by_end) = (
        of("SELECT count(*) AS n FROM orders WHERE lane = 'renewal'").await,
        of("SELECT count(*) AS n FROM orders o WHERE o.lane = 'renewal' AND EXISTS (SELECT 1 FROM certificates c \
             WHERE c.domain_id = o.domain_id AND c.not_after = o.ends_at)")
        .await,
    );
    assert!(all >= 200 && by_end == all, "{by_end} of {all} orders stand in line by the end of what they replace");
    assert_eq!(rig.ca.ordered_at().len() - before, 200, "and one each");
    let least = least_time_of(8, &rig.ca.ordered_at()[before..]);
    assert!(least >= Duration::from_secs(1_700), "eight orders within {least:?}");
}

/// B63 in full, by the functions that decide it: when each of ten thousand certificates is due, after the CA was away for six hours,
/// and in which order the dispatcher serves them under Let's Encrypt's limits, while new claims and an import come in as well.
#[test]
fn b63_ten_thousand_due_in_one_week_are_served_before_any_expires() {
    let limits = nameplate::model::limits::usual();
    let week = 7 * DAY;
    let begin = Moment::from_secs(1_800_000_000);
    let mut due: Vec<(Moment, Moment, Waiting)> = Vec::new();
    let waiting = |n: u32, tenant: u8, lane, not_before| {
        let mut drawn = [0; 10];
        drawn[6..].copy_from_slice(&n.to_be_bytes());
        let name = Hostname::trusted(&format!("www.n{n}.example"));
        let tenant_id = TenantId::mint(Moment::default(), [tenant; 10]);
        Waiting {
            order_id: OrderId::mint(not_before, drawn),
            tenant_id,
            lane,
            not_before,
            ends: Moment::NEVER,
            served: 0,
            name,
        }
    };
    let life = 90 * DAY;
    for n in 0..10_000_u32 {
        // Issued within five days, which with what spreads them is a week in which all are due.
        let not_before = begin + 5 * DAY / 10_000 * n;
        let mut drawn = [0; 10];
        drawn[6..].copy_from_slice(&n.wrapping_mul(2_654_435_761).to_be_bytes());
        let of = Validity { not_before, not_after: not_before + life };
        let at = own_moment(&CertificateId::mint(not_before, drawn), of);
        let waits = waiting(n, u8::try_from(n % 50).unwrap(), Lane::Renewal, at);
        due.push((at, of.not_after, Waiting { ends: of.not_after, ..waits }));
    }
    let first = due.iter().map(|(at, ..)| *at).min().unwrap();
    // The worst moment for the CA to be away: when most are due.
    let mut moments: Vec<Moment> = due.iter().map(|(at, ..)| *at).collect();
    moments.sort();
    assert!(moments[9_900].since(moments[100]) <= week + 2 * DAY);
    let away = (moments[5_000], moments[5_000] + 6 * HOUR);
    for (at, _, w) in &mut due {
        if (away.0..away.1).contains(&*at) {
            w.not_before = away.1;
        }
    }
    // And two claims are made by hand every hour, while an import as large as all that takes whatever is left.
    let claims = (0..24 * 14_u32).map(|h| waiting(20_000 + h, 99, Lane::Single, first + HOUR / 2 * h));
    let import = (0..10_000_u32).map(|n| waiting(30_000 + n, 98, Lane::Bulk, first));
    let mut all: Vec<Waiting> = due.iter().map(|(.., w)| w.clone()).chain(claims).chain(import).collect();
    all.sort_by(|a, b| a.order_id.cmp(&b.order_id));
    let served = dispatch(&all, &limits, &Spent::new(), 0, first);
    let at_once = served.grants.iter().map(|id| (id.clone(), first));
    let when: HashMap<OrderId, Moment> = at_once.chain(served.places.iter().map(|p| (p.order_id.clone(), p.eta))).collect();
    assert_eq!(when.len(), all.len(), "everybody has a turn");
    let left = due.iter().map(|(_, ends, w)| ends.since(when[&w.order_id])).min().unwrap();
    assert!(left > 25 * DAY, "the least that was left of one is {left:?}");
    let late = due.iter().map(|(at, _, w)| when[&w.order_id].since(*at)).max().unwrap();
    assert!(late < 3 * DAY, "one waited for {late:?}");
    let waited = all.iter().filter(|w| w.lane == Lane::Single).map(|w| when[&w.order_id].since(w.not_before)).max().unwrap();
    assert!(waited <= Duration::from_secs(180), "a claim by hand waited for {waited:?}");
}

/// A mass revocation: hundreds are replaced within hours, beside a budget that has room for ten.
#[tokio::test]
async fn hundreds_are_renewed_in_the_cas_window_without_budget() {
    let rig = Rig::with_limit(313, "sqlite::memory:", Limit { burst: 300, per_secs: 10_800 }).await;
    let names = live_names(&rig, 200).await;
    // Somebody's renewal showed that the CA keeps to it.
    rig.app.store.execute(sql("UPDATE issuers SET honours_replaces = 1")).await.unwrap();
    rig.pass_quickly(3 * DAY).await;
    let before = serials(&rig, &names);
    let now = rig.env.now();
    for (_, name) in &names {
        rig.ca.state().revoke_all_of(name, now);
    }
    let (ordered, full) = (rig.ca.ordered_at().len(), spent(&rig).await);
    rig.pass_quickly(10 * HOUR).await;
    let after = serials(&rig, &names);
    assert_eq!(before.intersection(&after).count(), 0, "all are replaced");
    assert_eq!((rig.ca.ordered_at().len(), spent(&rig).await), (ordered, full), "and nothing was spent");
    rig.check_invariants().await;
}
