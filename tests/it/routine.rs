//! Daily looks of live names: every name once a day, read-only, and only a difference wakes the one door.

use std::time::Duration;

use nameplate::app;
use nameplate::dns::world::{Fault, How};
use nameplate::store::sql;

use crate::support::rig::Rig;

const HOUR: Duration = Duration::from_secs(3600);

/// Some live domains, settled.
async fn live(rig: &Rig, many: usize) -> Vec<(nameplate::model::id::DomainId, String)> {
    let tenant = rig.tenant("acme").await;
    let mut all = Vec::new();
    for n in 0..many {
        let name = format!("n{n}.acme.test");
        let id = rig.claim(&tenant, &name).await;
        rig.publish(&id, &name).await;
        all.push((id, name));
    }
    for (id, _) in &all {
        rig.until_active(id, HOUR).await;
    }
    all
}

/// A day of batches; how many looks were made and how many names looked different.
async fn day(rig: &Rig) -> (usize, usize) {
    let (mut looked, mut differ) = (0, 0);
    for _ in 0..24 * 6 {
        rig.hand.advance(Duration::from_secs(600));
        loop {
            let batch = app::routine::batch(&rig.app).await.unwrap();
            looked += batch.looked;
            differ += batch.differ;
            if !batch.more {
                break;
            }
        }
        rig.everything_once(&rig.new_worker()).await;
        rig.edge_follows().await;
    }
    (looked, differ)
}

async fn generations(rig: &Rig) -> i64 {
    rig.count(sql("SELECT CAST(sum(generation) AS BIGINT) AS n FROM domains")).await
}

#[tokio::test]
async fn every_live_name_is_looked_at_once_a_day_and_nothing_is_written() {
    let rig = Rig::new(21).await;
    let all = live(&rig, 40).await;
    app::routine::batch(&rig.app).await.unwrap();
    let before = generations(&rig).await;
    for _ in 0..3 {
        assert_eq!(day(&rig).await, (all.len(), 0));
    }
    assert_eq!(generations(&rig).await, before, "no step was taken for a name that looks as before");
}

#[tokio::test]
async fn a_difference_is_looked_at_from_everywhere_and_told() {
    let rig = Rig::new(22).await;
    let all = live(&rig, 10).await;
    app::routine::batch(&rig.app).await.unwrap();
    let (id, name) = &all[3];
    rig.unpublish_txt(id, name).await;
    let (looked, differ) = day(&rig).await;
    assert_eq!((looked, differ), (all.len(), 1));
    assert!(rig.domain_text(id, "evidence").await.unwrap().contains("txt_missing"));
    assert_eq!(rig.events(id).await.last().map(String::as_str), Some("tie_weakened"));
    assert_eq!(rig.domain_text(id, "claim").await.unwrap(), "live");
    assert_eq!(day(&rig).await, (all.len(), 0), "it is told once");
}

/// Invariant 7: silence never releases a name: neither a live one nor one that waits for its certificate.
#[tokio::test]
async fn silence_releases_nothing() {
    for how in [How::ServFail, How::Timeout, How::Refused, How::Bogus, How::Truncated] {
        let rig = Rig::new(23).await;
        let all = live(&rig, 3).await;
        app::routine::batch(&rig.app).await.unwrap();
        let tenant = rig.tenant("beta").await;
        let waiting = rig.claim(&tenant, "late.acme.test").await;
        rig.publish(&waiting, "late.acme.test").await;
        app::advance::advance(&rig.new_worker(), &waiting).await.unwrap();
        assert_eq!(rig.domain_text(&waiting, "claim").await.unwrap(), "queued");
        rig.zones.set_faults(vec![Fault { name: "acme.test".to_owned(), kind: None, how, below: true }]);
        // Old enough that it must be looked at again before an order.
        rig.hand.advance(Duration::from_secs(121));
        for _ in 0..3 {
            day(&rig).await;
        }
        for (id, name) in &all {
            assert_eq!(rig.domain_text(id, "claim").await.unwrap(), "live", "{how:?}");
            assert!(rig.serial_at_edge(name).is_some(), "{how:?}: {name} is still served");
        }
        assert_eq!(rig.domain_text(&waiting, "claim").await.unwrap(), "queued", "{how:?}: {}", rig.story(&waiting).await);
        assert_eq!(rig.ca.state().counters().orders_by_name.get("late.acme.test"), None, "no order on what was not seen");
        rig.check_invariants().await;
        rig.zones.set_faults(Vec::new());
        rig.until_active(&waiting, 48 * HOUR).await;
    }
}
