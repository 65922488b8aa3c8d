//! Daily looks of live names: every name once a day, read-only, and only a difference wakes the one door.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use nameplate::app::routine::Batch;
use nameplate::app::{self, App};
use nameplate::dns::Look;
use nameplate::dns::scripted::ScriptedDns;
use nameplate::dns::world::{Fault, How};
use nameplate::env::manual::Hand;
use nameplate::model::look::{Ask, Seen};
use nameplate::model::moment::Moment;
use nameplate::model::routine::Cursor;
use nameplate::store::routine::Walk;
use nameplate::store::{self, issuers, sql};

use crate::support::fleet_seed;
use crate::support::rig::{Rig, START};
use crate::support::stores::{for_each_blank_store, until};

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

/// How long the walk stays with a process that is not heard of.
const LEASE: Duration = Duration::from_secs(300);

/// Live names of a large fleet.
const MANY: i64 = 600;

/// Looks that take time, each told; those at silent names as long as silence is listened to; after so many, none comes back.
struct Slow {
    dns: ScriptedDns,
    hand: Hand,
    takes: Mutex<Duration>,
    silent: Mutex<BTreeSet<String>>,
    left: AtomicUsize,
    looked: Mutex<BTreeMap<String, usize>>,
}

/// How long silence is listened to.
const SILENCE: Duration = Duration::from_secs(10);

impl Slow {
    /// What was looked at since the last time, and how often.
    fn told(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut self.looked.lock().unwrap())
    }

    /// Waits until looks at this many names were begun since the last time.
    async fn until_looked_at(&self, many: usize) {
        until("so many names are looked at", async || self.looked.lock().unwrap().len() >= many).await;
    }

    /// The first so many names are silent from now on.
    fn silence(&self, many: usize) {
        *self.silent.lock().unwrap() = (0..many).map(|n| format!("support{n}.customer{n}.test")).collect();
    }

    fn set(&self, takes: Duration, left: usize) {
        *self.takes.lock().unwrap() = takes;
        self.left.store(left, Ordering::SeqCst);
    }
}

#[async_trait]
impl Look for Slow {
    async fn look(&self, ask: &Ask) -> Seen {
        *self.looked.lock().unwrap().entry(ask.hostname.to_string()).or_default() += 1;
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_err() {
            return std::future::pending().await;
        }
        let silent = self.silent.lock().unwrap().contains(ask.hostname.as_str());
        if silent {
            self.hand.env().sleep(SILENCE).await;
        }
        self.hand.advance(*self.takes.lock().unwrap());
        self.dns.look(ask).await
    }
}

/// A large fleet on the database at `url` with which all is well, a day before any name is looked at.
async fn fleet(url: &str) -> (Rig, Arc<Slow>) {
    let mut rig = Rig::on(24, url).await;
    app::account::ensure_all(&rig.app).await.unwrap();
    let issuer = issuers::list(&rig.app.store).await.unwrap().remove(0);
    let mut mix = fleet_seed::parts();
    mix.truncate(1);
    mix[0].to = 99;
    fleet_seed::fill(&rig.app.store, &mix, (MANY, 6), issuer.id.as_str(), START).await;
    for n in 0..MANY {
        rig.also_zone(&format!("customer{n}.test"));
        rig.zones.add(&format!("support{n}.customer{n}.test. 60 IN CNAME tenant-{}.app.example.", n % 6)).unwrap();
        rig.zones.add(&txt_of(n)).unwrap();
    }
    let slow = Arc::new(Slow {
        dns: ScriptedDns::new(rig.zones.clone()),
        hand: rig.hand.clone(),
        takes: Mutex::default(),
        silent: Mutex::default(),
        left: AtomicUsize::new(usize::MAX),
        looked: Mutex::default(),
    });
    rig.app.look = slow.clone();
    assert_eq!(app::routine::batch(&rig.app).await.unwrap(), Batch::default());
    (rig, slow)
}

fn txt_of(n: i64) -> String {
    format!("_nameplate-challenge.support{n}.customer{n}.test. 60 IN TXT \"nameplate-verify={n:032}\"")
}

/// Batches until no more are due: how many, and how many names looked different.
async fn all_due(app: &App) -> (usize, usize) {
    let (mut batches, mut differ) = (0, 0);
    loop {
        let batch = app::routine::batch(app).await.unwrap();
        batches += 1;
        differ += batch.differ;
        if !batch.more {
            return (batches, differ);
        }
    }
}

#[track_caller]
fn each_once(looked: &BTreeMap<String, usize>) {
    assert_eq!(i64::try_from(looked.len()).unwrap(), MANY);
    assert!(looked.values().all(|times| *times == 1), "{looked:?}");
}

/// Where the walk stands, as the store has it.
async fn walk(rig: &Rig) -> Walk {
    store::routine::walk(&rig.app.store, Cursor::due(rig.env.now())).await.unwrap()
}

/// What a pass writes grows with time and with what changed, not with the fleet.
#[tokio::test]
async fn a_batch_ends_by_time_and_writes_once() {
    for_each_blank_store(async |test| {
        let (rig, slow) = fleet(&test.url).await;
        let rows = async || rig.app.store.rows_written().await.unwrap();
        rig.hand.advance(24 * HOUR);
        let before = rows().await;
        // One batch ends the day before, one comes as far as now.
        assert_eq!(all_due(&rig.app).await, (2, 0));
        each_once(&slow.told());
        let unchanged = rows().await.zip(before).map(|(now, before)| now - before);
        // The walk is taken once, and moved on by each.
        assert!(unchanged.is_none_or(|rows| rows == 3), "{unchanged:?} rows for {MANY} names that are as they were");

        rig.zones.remove(&txt_of(7)).unwrap();
        rig.hand.advance(24 * HOUR);
        let before = rows().await;
        assert_eq!(all_due(&rig.app).await, (2, 1));
        each_once(&slow.told());
        let changed = rows().await.zip(before).map(|(now, before)| now - before);
        assert!(changed.is_none_or(|rows| rows == 4), "{changed:?} rows for one name that changed");
        rig.zones.add(&txt_of(7)).unwrap();

        // A minute of looks is a few batches of ten seconds and what is under way then, and none misses or repeats a name.
        slow.set(Duration::from_millis(100), usize::MAX);
        rig.hand.advance(24 * HOUR);
        let (batches, _) = all_due(&rig.app).await;
        assert!((4..=7).contains(&batches), "{batches}");
        each_once(&slow.told());
    })
    .await;
}

/// A process that dies in the middle of a batch takes no name's look with it: it does them itself when it is back, or another one
/// when it was not heard of for minutes.
#[tokio::test]
async fn a_batch_that_was_cut_is_done_again() {
    for_each_blank_store(async |test| {
        let (rig, slow) = fleet(&test.url).await;
        let another = rig.new_worker();
        for (goes_on, waits) in [(&rig.app, Duration::ZERO), (&another, LEASE)] {
            slow.set(Duration::ZERO, 250);
            rig.hand.advance(24 * HOUR);
            assert!(app::routine::batch(&rig.app).await.unwrap().more, "the day before is over");
            tokio::select! {
                done = app::routine::batch(&rig.app) => panic!("looks hang, and the batch ended: {done:?}"),
                () = slow.until_looked_at(251) => {}
            }
            assert!((250..300).contains(&slow.told().len()));
            slow.set(Duration::ZERO, usize::MAX);
            assert_eq!(app::routine::batch(&another).await.unwrap(), Batch::default(), "it may be alive");
            rig.hand.advance(waits);
            assert_eq!(all_due(goes_on).await, (1, 0));
            each_once(&slow.told());
        }
    })
    .await;
}

/// A process that stood still for longer than the walk is kept for it: another one does its part, and it spoils nothing.
#[tokio::test]
async fn who_lost_the_walk_does_not_move_it() {
    for_each_blank_store(async |test| {
        let (rig, slow) = fleet(&test.url).await;
        slow.silence(10);
        rig.hand.advance(24 * HOUR);
        assert!(app::routine::batch(&rig.app).await.unwrap().more, "the day before is over");
        let mut stands_still = Box::pin(app::routine::batch(&rig.app));
        tokio::select! {
            done = &mut stands_still => panic!("ten names are silent, and the batch ended: {done:?}"),
            () = slow.until_looked_at(usize::try_from(MANY).unwrap()) => {}
        }
        each_once(&slow.told());
        slow.silence(0);
        rig.hand.advance(LEASE);
        let another = rig.new_worker();
        assert_eq!(all_due(&another).await, (1, 0));
        each_once(&slow.told());
        let after = walk(&rig).await;
        assert_eq!(after.done, Cursor::due(rig.env.now()));
        let lost = stands_still.await.unwrap();
        assert_eq!((lost.looked, lost.more), (usize::try_from(MANY).unwrap(), false));
        assert_eq!(walk(&rig).await, after);
    })
    .await;
}

/// Who read where the walk stood before another moved it on and gave it up does not take it back there.
#[tokio::test]
async fn nobody_takes_the_walk_where_it_stood_before() {
    for_each_blank_store(async |test| {
        let (rig, _) = fleet(&test.url).await;
        let (store, now, then) = (&rig.app.store, rig.env.now(), rig.env.now() + HOUR);
        let read = walk(&rig).await;
        let term = store::routine::take(store, &read, read.done, "one", (now, now + LEASE)).await.unwrap().unwrap();
        assert!(store::routine::advance(store, term, Cursor::due(then), None, None).await.unwrap());
        assert_eq!(store::routine::take(store, &read, read.done, "other", (then, then + LEASE)).await.unwrap(), None);
        let after = walk(&rig).await;
        assert_eq!(after.done, Cursor::due(then));
        assert!(store::routine::take(store, &after, after.done, "other", (then, then + LEASE)).await.unwrap().is_some());
    })
    .await;
}

/// Two processes that have a day to catch up with do not look at the same names.
#[tokio::test]
async fn two_processes_that_catch_up_look_at_each_name_once() {
    for_each_blank_store(async |test| {
        let (rig, slow) = fleet(&test.url).await;
        let other = rig.new_worker();
        slow.set(Duration::from_millis(100), usize::MAX);
        rig.hand.advance(24 * HOUR);
        let due = Cursor::due(rig.env.now());
        let walks = async |app: &App| {
            let mut looked = 0;
            while walk(&rig).await.done < due {
                looked += app::routine::batch(app).await.unwrap().looked;
                tokio::task::yield_now().await;
            }
            looked
        };
        let (one, another) = tokio::join!(walks(&rig.app), walks(&other));
        assert_eq!(i64::try_from(one + another).unwrap(), MANY, "{one} names and {another}");
        each_once(&slow.told());
        // It was given up at the end: nobody waits for it.
        rig.hand.advance(24 * HOUR);
        all_due(&other).await;
        each_once(&slow.told());
    })
    .await;
}

/// A zone that does not answer holds the places of its own names; all others go on, and none is skipped.
#[tokio::test]
async fn a_silent_zone_holds_nobody_else_up() {
    for_each_blank_store(async |test| {
        let (rig, slow) = fleet(&test.url).await;
        slow.silence(15);
        rig.hand.advance(24 * HOUR);
        assert!(app::routine::batch(&rig.app).await.unwrap().more, "the day before is over");
        let (day_before, many) = (walk(&rig).await.done, usize::try_from(MANY).unwrap());
        let others = async {
            slow.until_looked_at(many).await;
            assert_eq!(walk(&rig).await.done, day_before, "it moves past no name whose look is under way");
            rig.hand.advance(SILENCE);
        };
        let (batch, ()) = tokio::join!(app::routine::batch(&rig.app), others);
        assert_eq!(batch.unwrap(), Batch { looked: many, ..Batch::default() });
        each_once(&slow.told());
        assert!(walk(&rig).await.done > day_before);
    })
    .await;
}

/// A process that starts again with its clock behind midnight, which the walk has passed, has nothing to do: it walks no lap more
/// and moves nothing back.
#[tokio::test]
async fn a_clock_behind_midnight_walks_nothing_twice() {
    for_each_blank_store(async |test| {
        let (rig, slow) = fleet(&test.url).await;
        let midnight = Moment::from_secs((START.secs() / 86_400 + 1) * 86_400);
        // In the middle of this fleet, whose slots are those of the first half hour.
        rig.hand.advance_to(midnight + HOUR / 4);
        all_due(&rig.app).await;
        let (before, some) = (walk(&rig).await, slow.told());
        assert!((100..500).contains(&some.len()), "{} names", some.len());
        let mut late = rig.new_worker();
        let minutes_before = Hand::new(Moment::from_secs(midnight.secs() - 180), 53);
        late.env = minutes_before.env();
        for _ in 0..10 {
            assert_eq!(app::routine::batch(&late).await.unwrap(), Batch::default());
            minutes_before.advance(Duration::from_secs(60));
        }
        assert_eq!(walk(&rig).await, before);
        for _ in 0..23 {
            rig.hand.advance(HOUR);
            all_due(&rig.app).await;
        }
        let rest = slow.told();
        assert!(rest.keys().all(|name| !some.contains_key(name)), "{rest:?}");
        each_once(&some.into_iter().chain(rest).collect());
    })
    .await;
}
