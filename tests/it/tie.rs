//! What ties a name to its tenant after the proof: told when it weakens, counted as far as it is seen.

use std::sync::Arc;
use std::time::Duration;

use nameplate::app::{self, Settings};
use nameplate::dns::world::{Fault, How};
use nameplate::model::evidence::Check;
use nameplate::model::tie::LOOK_AGAIN;
use nameplate::store::sql;

use crate::preflight::{DAY, HOUR, NAME, OURS, claimed, domain, evidence, prove, world};

/// The tie: weakened and lost are told, time counts only as far as it is seen, silence pauses it, and nothing is taken away yet.
#[tokio::test]
async fn a_lost_tie_is_told_and_counted_by_what_is_seen() {
    let rig = world(90).await;
    let id = claimed(&rig, "acme.test").await;
    rig.zones.add(&format!("acme.test. 60 IN A {OURS}")).unwrap();
    prove(&rig, &id, "acme.test").await;
    rig.until_active(&id, HOUR).await;
    let ownership = evidence(&rig, &id, Check::Ownership).await.unwrap().finding;
    assert!(ownership.record_to_publish[0].keep);
    app::check::check_now(&rig.app, &id, "tenant").await.unwrap();
    rig.pass(Duration::from_secs(60)).await;
    let ownership = evidence(&rig, &id, Check::Ownership).await.unwrap().finding;
    assert!(ownership.advice.contains("Keep this record"), "{}", ownership.advice);
    rig.unpublish_txt(&id, "acme.test").await;
    app::check::check_now(&rig.app, &id, "tenant").await.unwrap();
    rig.pass(Duration::from_secs(60)).await;
    let now = domain(&rig, &id).await;
    assert_eq!((now.tie.as_str(), now.lost_for_us), ("lost", 0));
    assert!(now.evidence_of(Check::Ownership).unwrap().finding.advice.contains("put this record back"));
    assert!(rig.events(&id).await.contains(&"tie_lost".to_owned()), "{:?}", rig.events(&id).await);
    rig.pass(2 * DAY).await;
    let seen = domain(&rig, &id).await.lost_for_us;
    let hours = Duration::from_micros(seen.unsigned_abs()).as_secs() / 3600;
    assert!((36..=48).contains(&hours), "{hours} h were counted in 48 h of looking every six");
    // The zone falls silent for four days: the clock stands still.
    rig.zones.set_faults(vec![Fault { name: "acme.test".to_owned(), kind: None, how: How::ServFail, below: true }]);
    rig.pass(4 * DAY).await;
    let now = domain(&rig, &id).await;
    assert_eq!((now.tie.as_str(), now.counted_until), ("lost", None));
    assert!(now.lost_for_us <= seen + 8 * 3_600_000_000, "{} after {seen}", now.lost_for_us);
    assert_eq!(now.claim.as_str(), "live", "nothing is taken away");
    assert!(rig.serial_at_edge("acme.test").is_some());
    rig.zones.set_faults(Vec::new());
    prove(&rig, &id, "acme.test").await;
    rig.pass(DAY).await;
    let now = domain(&rig, &id).await;
    assert_eq!((now.tie.as_str(), now.lost_for_us), ("held", 0));
    assert_eq!(rig.events(&id).await.last().map(String::as_str), Some("tie_held"));
}

/// With one target for all, a way to us says nothing of whose it is; what was promised stays promised when the mode changes.
#[tokio::test]
async fn a_shared_target_makes_the_record_the_only_tie_and_the_promise_stays() {
    let mut rig = world(91).await;
    let before = claimed(&rig, NAME).await;
    rig.publish(&before, NAME).await;
    let mut settings = Settings::clone(&rig.app.settings);
    settings.routing_mode = nameplate::model::domain::RoutingMode::Shared;
    settings.shared_target = Some("edge.app.example".to_owned());
    rig.app.settings = Arc::new(settings);
    let tenant = rig.tenant("beta").await;
    let shared = rig.claim(&tenant, "help.acme.test").await;
    rig.publish(&shared, "help.acme.test").await;
    for id in [&before, &shared] {
        rig.until_active(id, HOUR).await;
    }
    assert_eq!(domain(&rig, &before).await.target, "acme.app.example");
    assert_eq!(domain(&rig, &shared).await.target, "edge.app.example");
    for (id, name, tie, kept) in [(&before, NAME, "weakened", false), (&shared, "help.acme.test", "lost", true)] {
        let record = evidence(&rig, id, Check::Ownership).await.unwrap().finding.record_to_publish[0].clone();
        assert_eq!(record.keep, kept, "{name}");
        rig.unpublish_txt(id, name).await;
        app::check::check_now(&rig.app, id, "tenant").await.unwrap();
        rig.pass(Duration::from_secs(60)).await;
        assert_eq!(domain(&rig, id).await.tie.as_str(), tie, "{name}");
        let again = sql("SELECT due_at - looked_at AS n FROM domains WHERE id = $1").bind(id.as_str());
        assert_eq!(rig.count(again).await, i64::try_from(LOOK_AGAIN.as_micros()).unwrap(), "{name} is looked at soon again");
        assert_eq!(domain(&rig, id).await.claim.as_str(), "live", "{name}");
    }
}
