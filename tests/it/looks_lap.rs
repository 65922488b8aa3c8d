//! Imported names in virtual time: a first look each, in their turn, and then a slow lap until something changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use nameplate::app::{self, check, claim, lap};
use nameplate::dns::Look;
use nameplate::env::Env;
use nameplate::jobs::sweep::{Sweep, SweepSettings};
use nameplate::model::hostname::Hostname;
use nameplate::model::id::{DomainId, TenantId};
use nameplate::model::look::{Ask, Lane, Seen};
use nameplate::model::moment::Moment;
use nameplate::model::order;
use nameplate::store::sql;

use crate::support::rig::Rig;

const HOUR: Duration = Duration::from_secs(3600);

/// Writes down every look: when, at what, in which lane.
struct Counted {
    inner: Arc<dyn Look>,
    env: Env,
    looks: Mutex<Vec<(Moment, String, Lane)>>,
}

#[async_trait]
impl Look for Counted {
    async fn look(&self, ask: &Ask) -> Seen {
        self.looks.lock().unwrap().push((self.env.now(), ask.hostname.to_string(), ask.turn.lane));
        self.inner.look(ask).await
    }
}

impl Counted {
    fn on(rig: &mut Rig) -> Arc<Counted> {
        let counted = Counted { inner: rig.app.look.clone(), env: rig.env.clone(), looks: Mutex::default() };
        let counted = Arc::new(counted);
        rig.app.look = counted.clone();
        counted
    }

    fn take(&self) -> Vec<(Moment, String, Lane)> {
        std::mem::take(&mut self.looks.lock().unwrap())
    }
}

/// The most in less than a second.
fn in_a_second(looks: &[(Moment, String, Lane)]) -> usize {
    let near = |from: Moment| looks.iter().filter(|(t, ..)| *t >= from && t.since(from) < Duration::from_secs(1)).count();
    looks.iter().map(|(t, ..)| near(*t)).max().unwrap_or(0)
}

async fn import(rig: &Rig, tenant: &TenantId, many: usize) -> Vec<(DomainId, String)> {
    let mut tx = rig.app.store.begin().await.unwrap();
    let mut all = Vec::new();
    for n in 0..many {
        let name = format!("n{n}.acme.test");
        let host = Hostname::trusted(&name);
        let made = claim::claim_in_lane(&rig.app, &mut tx, tenant, &host, "import", order::Lane::Bulk).await.unwrap();
        assert!(made.new);
        all.push((made.id, name));
    }
    tx.commit().await.unwrap();
    all
}

/// Rounds of the lap for a time, each when the next name is due.
async fn pass(rig: &Rig, time: Duration) {
    let end = rig.env.now() + time;
    while rig.env.now() < end {
        let round = lap::round(&rig.app).await.unwrap();
        let next = round.next.unwrap_or(end).clamp(rig.env.now() + Duration::from_millis(1), end);
        rig.hand.advance_to(next);
    }
}

#[tokio::test]
async fn a_thousand_imported_names_cost_a_first_look_and_a_slow_lap() {
    const NAMES: usize = 1_000;
    let mut rig = Rig::new(51).await;
    let looks = Counted::on(&mut rig);
    let tenant = rig.tenant("acme").await;
    let names = import(&rig, &tenant, NAMES).await;
    assert_eq!(rig.queue.next_at(), None, "no alarm of theirs stands before anybody's");
    let told = rig.count(sql("SELECT max(due_at) AS n FROM domains")).await;
    assert_eq!(Moment::from_micros(told).since(rig.env.now()), Duration::from_millis(99_900), "each is told its own time");
    pass(&rig, Duration::from_secs(100)).await;
    let first = looks.take();
    assert_eq!(first.len(), NAMES, "one look each");
    assert!(in_a_second(&first) <= 10, "{} in a second", in_a_second(&first));
    assert!(first.iter().all(|(.., lane)| *lane == Lane::Bulk));
    // A lap takes an hour, for so few.
    pass(&rig, HOUR * 3).await;
    let later = looks.take();
    assert_eq!(later.len(), NAMES * 3, "three laps");
    assert!(in_a_second(&later) <= 10, "{} in a second", in_a_second(&later));
    let mut each: HashMap<&str, usize> = HashMap::new();
    for (_, name, _) in &later {
        *each.entry(name).or_default() += 1;
    }
    assert!(each.len() == NAMES && each.values().all(|n| *n == 3), "{each:?}");
    // The sweep leaves them to their lap, even when they are late.
    rig.hand.advance(HOUR * 2);
    let sweep = Sweep::new(&rig.app.store, Arc::new(rig.queue.clone()), &rig.env, SweepSettings::default());
    assert_eq!(sweep.once().await.unwrap().rearmed, 0);
    // Somebody who asks for one of them waits for no lap, and not for an alarm that was lost either.
    let (id, name) = &names[NAMES - 1];
    check::check_now(&rig.app, id, "tenant").await.unwrap();
    assert_eq!(rig.queue.pop(rig.env.now()).as_ref(), Some(id));
    rig.hand.advance(Duration::from_secs(11));
    assert_eq!(sweep.once().await.unwrap().rearmed, 1);
    app::advance::advance(&rig.app, id).await.unwrap();
    assert_eq!(looks.take(), [(rig.env.now(), name.clone(), Lane::CheckNow)]);
    rig.check_invariants().await;
}

#[tokio::test]
async fn an_imported_name_that_changes_leaves_its_lap_and_one_that_passes_is_ordered_as_bulk() {
    let mut rig = Rig::new(52).await;
    let looks = Counted::on(&mut rig);
    let tenant = rig.tenant("acme").await;
    app::account::ensure_all(&rig.app).await.unwrap();
    let names = import(&rig, &tenant, 5).await;
    pass(&rig, HOUR).await;
    looks.take();
    let (half, whole) = (&names[1], &names[2]);
    let value = rig.value(&half.0).await;
    rig.zones.add(&format!("_nameplate-challenge.{}. 60 IN TXT \"{value}\"", half.1)).unwrap();
    rig.publish(&whole.0, &whole.1).await;
    pass(&rig, HOUR * 3).await;
    let seen = looks.take();
    let of = |name: &str| seen.iter().filter(|(_, n, _)| n == name).count();
    assert!((2..=4).contains(&of(&names[0].1)), "{} looks at a name that nobody touched", of(&names[0].1));
    assert!((15..=30).contains(&of(&half.1)), "{} looks at a name that somebody works on", of(&half.1));
    assert_eq!(rig.domain_text(&whole.0, "claim").await.unwrap(), "queued");
    let lanes =
        rig.app.store.query(sql("SELECT lane FROM orders WHERE domain_id = $1").bind(whole.0.as_str())).await.unwrap();
    assert_eq!(lanes[0].text("lane").unwrap(), "bulk");
    // It becomes what any other becomes.
    rig.until_active(&whole.0, HOUR).await;
    rig.check_invariants().await;
}

#[tokio::test]
async fn a_zone_that_changes_with_every_look_is_no_reason_for_more_of_them() {
    let mut rig = Rig::new(53).await;
    let looks = Counted::on(&mut rig);
    let tenant = rig.tenant("acme").await;
    let names = import(&rig, &tenant, 1).await;
    pass(&rig, HOUR).await;
    let (id, name) = &names[0];
    let line = format!("_nameplate-challenge.{name}. 60 IN TXT \"{}\"", rig.value(id).await);
    looks.take();
    let end = rig.env.now() + HOUR * 24 * 3;
    let mut there = false;
    while rig.env.now() < end {
        match there {
            true => rig.zones.remove(&line).unwrap(),
            false => drop(rig.zones.add(&line).unwrap()),
        }
        there = !there;
        let next = lap::round(&rig.app).await.unwrap().next.unwrap();
        rig.hand.advance_to(next.max(rig.env.now() + Duration::from_millis(1)));
    }
    let many = looks.take().len();
    assert!(many <= 3 * 75, "{many} looks in three days");
}

/// A name that went before its turn has no turn: it is not the last in the line for ever.
#[tokio::test]
async fn names_removed_before_their_first_look_keep_nobody_waiting() {
    let rig = Rig::new(54).await;
    let tenant = rig.tenant("acme").await;
    for (id, _) in import(&rig, &tenant, 3).await {
        app::remove::remove(&rig.app, &id, "tenant").await.unwrap();
    }
    let names = import(&rig, &tenant, 3).await;
    let last = names.last().unwrap();
    let row = rig.app.store.query(sql("SELECT due_at FROM domains WHERE id = $1").bind(last.0.as_str())).await.unwrap();
    assert_eq!(row[0].moment("due_at").unwrap().since(rig.env.now()), Duration::from_millis(200));
    pass(&rig, Duration::from_secs(10)).await;
    let looked = "SELECT count(*) AS n FROM domains WHERE claim = 'awaiting_dns' AND looked_at IS NOT NULL";
    assert_eq!(rig.count(sql(looked)).await, 3);
}
