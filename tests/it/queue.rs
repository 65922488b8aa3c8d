//! The alarm clock on both databases: what it promises, and what may go wrong with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use nameplate::env::Env;
use nameplate::jobs::door::Door;
use nameplate::jobs::queue::{Queue, QueueSettings};
use nameplate::jobs::schedule::Schedule;
use nameplate::jobs::sweep::{Sweep, SweepSettings, Swept};
use nameplate::jobs::{Alarms, Step};
use nameplate::model::id::DomainId;
use nameplate::model::moment::Moment;
use nameplate::store::{Store, Wake, sql};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::rig::Rig;
use crate::support::seed;
use crate::support::stores::{Kind, TestStore, for_each_store, until};

/// A step that marks the domain as done for good, the way the real one ends: in a guarded transaction of its own.
struct Doing {
    store: Store,
    env: Env,
    started: Mutex<HashMap<DomainId, Vec<Moment>>>,
    finished: Mutex<usize>,
    /// These panic the first time.
    panics: Mutex<Vec<DomainId>>,
    /// Every step waits for this many permits.
    gate: Option<Arc<tokio::sync::Semaphore>>,
}

impl Doing {
    fn new(store: &Store, panics: &[DomainId], gate: Option<Arc<tokio::sync::Semaphore>>) -> Arc<Doing> {
        Arc::new(Doing {
            store: store.clone(),
            env: Env::real(),
            started: Mutex::default(),
            finished: Mutex::default(),
            panics: Mutex::new(panics.to_vec()),
            gate,
        })
    }

    fn starts(&self, id: &DomainId) -> usize {
        self.started.lock().unwrap().get(id).map_or(0, Vec::len)
    }

    fn started(&self) -> usize {
        self.started.lock().unwrap().len()
    }

    fn finished(&self) -> usize {
        *self.finished.lock().unwrap()
    }
}

#[async_trait]
impl Step for Doing {
    async fn advance(&self, id: &DomainId) {
        self.started.lock().unwrap().entry(id.clone()).or_default().push(self.env.now());
        let doomed = {
            let mut panics = self.panics.lock().unwrap();
            let place = panics.iter().position(|p| p == id);
            place.map(|at| panics.swap_remove(at)).is_some()
        };
        assert!(!doomed, "a step that panics on purpose");
        if let Some(gate) = &self.gate {
            gate.acquire().await.unwrap().forget();
        }
        let mut tx = self.store.begin().await.unwrap();
        tx.execute(sql("UPDATE domains SET due_at = $2 WHERE id = $1").bind(id.as_str()).bind(Moment::NEVER)).await.unwrap();
        tx.commit().await.unwrap();
        *self.finished.lock().unwrap() += 1;
    }
}

struct Running {
    queue: Queue,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    fn new(store: &Store, step: Arc<Doing>, grace: Duration) -> Running {
        let settings = QueueSettings { concurrency: 4, heartbeat: Duration::from_secs(1), grace };
        let queue = Queue::new(store, &Env::real(), settings);
        let stop = CancellationToken::new();
        let task = tokio::spawn({
            let (queue, stop) = (queue.clone(), stop.clone());
            async move { queue.work(step, stop).await }
        });
        Running { queue, stop, task }
    }

    async fn end(self) {
        self.stop.cancel();
        tokio::time::timeout(Duration::from_secs(20), self.task).await.expect("the worker ends").unwrap();
    }
}

fn queue(store: &Store) -> Queue {
    Queue::new(store, &Env::real(), QueueSettings::default())
}

fn sweep(store: &Store, late: Duration) -> Sweep {
    sweep_with(store, SweepSettings { late, ..SweepSettings::default() })
}

fn sweep_with(store: &Store, settings: SweepSettings) -> Sweep {
    Sweep::new(store, Arc::new(queue(store)), &Env::real(), settings)
}

async fn wake(store: &Store, queue: &Queue, ids: &[DomainId]) {
    let mut tx = store.begin().await.unwrap();
    for id in ids {
        queue.wake(&mut tx, id, Env::real().now()).await.unwrap();
    }
    tx.commit().await.unwrap();
}

/// How many rows the queue's table has in all.
async fn rows(test: &TestStore) -> i64 {
    let count = if test.kind == Kind::Postgres {
        sql("SELECT COUNT(*) AS n FROM apalis.jobs")
    } else {
        sql("SELECT COUNT(*) AS n FROM Jobs")
    };
    test.store.query(count).await.unwrap()[0].int("n").unwrap()
}

async fn delete_all_rows(test: &TestStore) {
    let delete = if test.kind == Kind::Postgres { sql("DELETE FROM apalis.jobs") } else { sql("DELETE FROM Jobs") };
    test.store.execute(delete).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alarm_is_set_with_the_transaction_or_not_at_all() {
    for_each_store(async |test| {
        let ids = seed::domains(&test.store, 2, Moment::NEVER).await;
        let queue = queue(&test.store);
        let mut dropped = test.store.begin().await.unwrap();
        queue.wake(&mut dropped, &ids[0], Moment::default()).await.unwrap();
        drop(dropped);
        assert_eq!(queue.waiting().await.unwrap(), 0);
        wake(&test.store, &queue, &ids).await;
        assert_eq!(queue.waiting().await.unwrap(), 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alarm_rings_at_once_in_its_own_process() {
    for_each_store(async |test| {
        let env = Env::real();
        let ids = seed::domains(&test.store, 40, Moment::default()).await;
        let step = Doing::new(&test.store, &[], None);
        let running = Running::new(&test.store, Arc::clone(&step), Duration::from_secs(10));
        let mut waits = Vec::new();
        for id in &ids {
            let set = env.now();
            wake(&test.store, &running.queue, std::slice::from_ref(id)).await;
            until("the alarm rings", async || step.starts(id) == 1).await;
            waits.push(step.started.lock().unwrap()[id][0].since(set));
        }
        running.end().await;
        waits.sort();
        println!("{:?}: set to start p50 {:?}, longest {:?}", test.kind, waits[20], waits[39]);
        assert!(waits[20] < Duration::from_millis(250), "half of the alarms rang after {:?}", waits[20]);
    })
    .await;
}

/// Ten thousand alarms of an import would stand before the one that somebody waits for.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_it_is_rung_before_all_others_that_are_due() {
    for_each_store(async |test| {
        let ids = seed::domains(&test.store, 300, Moment::default()).await;
        let (many, one) = ids.split_at(299);
        let queue = queue(&test.store);
        wake(&test.store, &queue, many).await;
        let mut tx = test.store.begin().await.unwrap();
        queue.wake_first(&mut tx, &one[0], Env::real().now()).await.unwrap();
        tx.commit().await.unwrap();
        let step = Doing::new(&test.store, &[], None);
        let running = Running::new(&test.store, Arc::clone(&step), Duration::from_secs(10));
        until("it is rung", async || step.starts(&one[0]) == 1).await;
        running.end().await;
        let started = step.started.lock().unwrap();
        let mine = started[&one[0]][0];
        let before = started.values().flatten().filter(|at| **at < mine).count();
        assert!(before < 8, "{:?}: {before} of {} alarms rang before it", test.kind, many.len());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coming_alarm_rings_when_it_is_due_and_not_before() {
    for_each_store(async |test| {
        let ids = seed::domains(&test.store, 1, Moment::default()).await;
        let step = Doing::new(&test.store, &[], None);
        let running = Running::new(&test.store, Arc::clone(&step), Duration::from_secs(10));
        let at = Env::real().now() + Duration::from_millis(300);
        let mut tx = test.store.begin().await.unwrap();
        running.queue.wake(&mut tx, &ids[0], at).await.unwrap();
        tx.commit().await.unwrap();
        until("the alarm rings", async || step.starts(&ids[0]) == 1).await;
        running.end().await;
        assert!(step.started.lock().unwrap()[&ids[0]][0] >= at);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_alarms_and_steps_share_the_store_without_starving() {
    for_each_store(async |test| {
        let ids = seed::domains(&test.store, 300, Moment::default()).await;
        let step = Doing::new(&test.store, &[], None);
        let running = Running::new(&test.store, Arc::clone(&step), Duration::from_secs(10));
        let began = Env::real().now();
        for some in ids.chunks(50) {
            wake(&test.store, &running.queue, some).await;
        }
        until("all steps are done", async || step.finished() == 300).await;
        println!("{:?}: 300 alarms and steps in {:?}", test.kind, Env::real().now().since(began));
        running.end().await;
        assert!(ids.iter().all(|id| step.starts(id) == 1));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_alarm_is_set_again_by_the_sweep_and_only_where_it_is_needed() {
    for_each_store(async |test| {
        let now = Env::real().now();
        let ids = seed::domains(&test.store, 5, now - Duration::from_secs(60)).await;
        let set = async |stmt: &'static str, n: usize, at: Moment| {
            test.store.execute(sql(stmt).bind(ids[n].as_str()).bind(at)).await.unwrap();
        };
        set("UPDATE domains SET due_at = $2 WHERE id = $1", 1, now - Duration::from_secs(1)).await;
        set("UPDATE domains SET lease_until = $2 WHERE id = $1", 2, now + Duration::from_secs(60)).await;
        set("UPDATE domains SET claim = 'released', claim_since = $2 WHERE id = $1", 3, now).await;
        let sweep = sweep(&test.store, Duration::from_secs(10));
        assert_eq!(sweep.once().await.unwrap(), Swept { rearmed: 2, removed: 0 });
        let step = Doing::new(&test.store, &[], None);
        let running = Running::new(&test.store, Arc::clone(&step), Duration::from_secs(10));
        until("both are advanced", async || step.finished() == 2).await;
        running.end().await;
        assert_eq!(step.starts(&ids[0]) + step.starts(&ids[4]), 2);
        assert_eq!(sweep.once().await.unwrap().rearmed, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sweep_adds_no_more_than_there_is_room_for() {
    for_each_store(async |test| {
        seed::domains(&test.store, 10, Moment::default()).await;
        let sweep = sweep_with(&test.store, SweepSettings { room: 7, ..SweepSettings::default() });
        assert_eq!(sweep.once().await.unwrap().rearmed, 7);
        assert_eq!(sweep.once().await.unwrap().rearmed, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_every_row_of_the_queue_costs_a_sweep_and_nothing_else() {
    for_each_store(async |test| {
        let ids = seed::domains(&test.store, 30, Moment::default()).await;
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let step = Doing::new(&test.store, &[], Some(Arc::clone(&gate)));
        let running = Running::new(&test.store, Arc::clone(&step), Duration::from_secs(10));
        wake(&test.store, &running.queue, &ids).await;
        until("some steps run", async || step.started() >= 4).await;
        delete_all_rows(test).await;
        gate.add_permits(10_000);
        let sweep = sweep(&test.store, Duration::ZERO);
        until("all steps are done", async || {
            sweep.once().await.unwrap();
            step.started() == 30 && step.finished() >= 30
        })
        .await;
        running.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_leaves_the_worker_alive_and_the_domain_due() {
    for_each_store(async |test| {
        let ids = seed::domains(&test.store, 6, Moment::default()).await;
        let step = Doing::new(&test.store, &ids[..5], None);
        let running = Running::new(&test.store, Arc::clone(&step), Duration::from_secs(10));
        wake(&test.store, &running.queue, &ids[..5]).await;
        until("all five panicked", async || step.started() == 5).await;
        wake(&test.store, &running.queue, &ids[5..]).await;
        until("the sixth is done", async || step.finished() == 1).await;
        let sweep = sweep(&test.store, Duration::ZERO);
        until("the five are done the second time", async || {
            sweep.once().await.unwrap();
            step.finished() >= 6 && ids[..5].iter().all(|id| step.starts(id) >= 2)
        })
        .await;
        running.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_step_finishes_at_the_stop_and_no_other_begins() {
    for_each_store(async |test| {
        let ids = seed::domains(&test.store, 30, Moment::default()).await;
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let step = Doing::new(&test.store, &[], Some(Arc::clone(&gate)));
        let running = Running::new(&test.store, Arc::clone(&step), Duration::from_secs(10));
        wake(&test.store, &running.queue, &ids).await;
        until("four steps run", async || step.started() == 4).await;
        running.stop.cancel();
        gate.add_permits(10_000);
        running.end().await;
        assert_eq!((step.started(), step.finished()), (4, 4));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_does_not_end_is_dropped_after_the_grace() {
    for_each_store(async |test| {
        let ids = seed::domains(&test.store, 1, Moment::default()).await;
        let step = Doing::new(&test.store, &[], Some(Arc::new(tokio::sync::Semaphore::new(0))));
        let running = Running::new(&test.store, Arc::clone(&step), Duration::from_millis(200));
        wake(&test.store, &running.queue, &ids).await;
        until("the step runs", async || step.started() == 1).await;
        running.end().await;
        assert_eq!(step.finished(), 0);
        assert_eq!(sweep(&test.store, Duration::ZERO).once().await.unwrap().rearmed, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_dropped_takes_its_steps_along_and_another_does_them() {
    for_each_store(async |test| {
        let ids = seed::domains(&test.store, 4, Moment::default()).await;
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let step = Doing::new(&test.store, &[], Some(Arc::clone(&gate)));
        let dropped = Running::new(&test.store, Arc::clone(&step), Duration::from_secs(10));
        wake(&test.store, &dropped.queue, &ids).await;
        until("four steps run", async || step.started() == 4).await;
        dropped.task.abort();
        // The steps of the dropped worker stand in the line for the gate before any other; dropped, they leave it.
        assert!(dropped.task.await.unwrap_err().is_cancelled());
        until("the steps are gone", async || Arc::strong_count(&step) == 1).await;
        gate.add_permits(4);
        let running = Running::new(&test.store, Arc::clone(&step), Duration::from_secs(10));
        assert_eq!(sweep(&test.store, Duration::ZERO).once().await.unwrap().rearmed, 4);
        until("all are done", async || step.finished() == 4).await;
        running.end().await;
        assert!(ids.iter().all(|id| step.starts(id) == 2));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_comes_back_after_its_connections_were_cut() {
    for_each_store(async |test| {
        let ids = seed::domains(&test.store, 8, Moment::default()).await;
        let step = Doing::new(&test.store, &[], None);
        let running = Running::new(&test.store, Arc::clone(&step), Duration::from_secs(10));
        wake(&test.store, &running.queue, &ids[..4]).await;
        until("the first four are done", async || step.finished() == 4).await;
        test.cut().await;
        let sweep = sweep(&test.store, Duration::ZERO);
        until("the rest is done", async || {
            // The first statements after the cut may still meet a connection that is gone.
            let _ = sweep.once().await;
            step.finished() >= 8
        })
        .await;
        running.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_the_alarms_and_each_rings_once() {
    for_each_store(async |test| {
        let Some(other) = test.reopened().await else { return assert_eq!(test.kind, Kind::SqliteMemory) };
        let ids = seed::domains(&test.store, 60, Moment::default()).await;
        let step = Doing::new(&test.store, &[], None);
        let here = Running::new(&test.store, Arc::clone(&step), Duration::from_secs(10));
        let there = Running::new(&other, Arc::clone(&step), Duration::from_secs(10));
        for some in ids.chunks(10) {
            wake(&test.store, &here.queue, &some[..5]).await;
            wake(&other, &there.queue, &some[5..]).await;
        }
        until("all steps are done", async || step.finished() == 60).await;
        here.end().await;
        there.end().await;
        assert!(ids.iter().all(|id| step.starts(id) == 1));
        other.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_queue_leaves_behind_is_removed() {
    for_each_store(async |test| {
        let ids = seed::domains(&test.store, 3, Moment::default()).await;
        let step = Doing::new(&test.store, &[], None);
        let running = Running::new(&test.store, Arc::clone(&step), Duration::from_secs(10));
        let queue = running.queue.clone();
        wake(&test.store, &queue, &ids[..2]).await;
        until("both are done", async || step.finished() == 2).await;
        running.end().await;
        let now = Env::real().now();
        assert_eq!(queue.tidy(now).await.unwrap(), 0, "rows just rung are kept for a while");
        assert_eq!(queue.tidy(now + Duration::from_secs(120)).await.unwrap(), 2);
        assert_eq!(rows(test).await, 0);
        // The fault of the queue that hides an alarm from everybody: pending, yet held.
        wake(&test.store, &queue, &ids[2..]).await;
        let hide = if test.kind == Kind::Postgres {
            sql("UPDATE apalis.jobs SET lock_by = (SELECT id FROM apalis.workers LIMIT 1), lock_at = now()")
        } else {
            sql("UPDATE Jobs SET lock_by = (SELECT id FROM Workers LIMIT 1), lock_at = strftime('%s', 'now')")
        };
        assert_eq!(test.store.execute(hide).await.unwrap(), 1);
        assert_eq!(queue.waiting().await.unwrap(), 0);
        assert_eq!(queue.tidy(now + Duration::from_secs(120)).await.unwrap(), 1);
        // Workers go once no row names them.
        assert_eq!(queue.tidy(now + Duration::from_secs(7200)).await.unwrap(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_runs_workers_and_sweep_and_ends_them() {
    for_each_store(async |test| {
        let env = Env::real();
        seed::domains(&test.store, 5, Moment::default()).await;
        let step = Doing::new(&test.store, &[], None);
        let queue = queue(&test.store);
        let sweep = Sweep::new(&test.store, Arc::new(queue.clone()), &env, SweepSettings::default());
        let stop = CancellationToken::new();
        let schedule = Schedule::new(&env, Duration::from_secs(15)).with_workers(queue, step.clone(), sweep);
        let running = tokio::spawn(schedule.run(stop.clone()));
        until("all are swept up and done", async || step.finished() == 5).await;
        stop.cancel();
        assert_eq!(running.await.unwrap(), 0);
    })
    .await;
}

#[tokio::test]
async fn the_door_moves_a_domain_on_and_takes_an_unknown_one_for_nothing_due() {
    let rig = Rig::new(1).await;
    let tenant = rig.tenant("acme").await;
    let id = rig.claim(&tenant, "support.acme.test").await;
    let door = Door::new(rig.app.clone());
    door.advance(&seed::domain_id(9)).await;
    door.advance(&id).await;
    let looked = sql("SELECT COUNT(*) AS n FROM domains WHERE looked_at IS NOT NULL AND lease_until = 0");
    assert_eq!(rig.count(looked).await, 1);
}
