//! What one step of the one door costs: time and round trips to the store, over whole walks in memory.
//!
//! Run `cargo bench --bench advance`; pin it to one processor with `taskset -c 0`. It prints one line a kind of step and fails
//! when a step goes over its bounds (400 µs on average, 8 round trips at most).
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the real clock")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nameplate::app;
use nameplate::store::sql;

#[path = "../tests/it/support"]
mod support {
    #[expect(dead_code, reason = "the tests use more of the rig than the benchmark does")]
    pub mod rig;
}

use support::rig::Rig;

const DOMAINS: usize = 200;
const STEP: Duration = Duration::from_micros(400);
const TRIPS: u64 = 8;

#[derive(Default)]
struct Sum {
    steps: u32,
    time: Duration,
    trips: u64,
    most: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let rig = Rig::new(1).await;
    let tenant = rig.tenant("acme").await;
    let mut ids = Vec::new();
    for n in 0..DOMAINS {
        let name = format!("n{n}.acme.test");
        let id = rig.claim(&tenant, &name).await;
        rig.publish(&id, &name).await;
        ids.push(id);
    }
    app::account::ensure_all(&rig.app).await.unwrap();
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    let mut all = Sum::default();
    for _ in 0..40 {
        app::dispatch::round(&rig.app).await.unwrap();
        for id in &ids {
            let (before, began) = (rig.app.store.round_trips(), Instant::now());
            let done = app::advance::advance(&rig.app, id).await.unwrap();
            let (time, trips) = (began.elapsed(), rig.app.store.round_trips() - before);
            if done == app::advance::Advanced::NotDue {
                continue;
            }
            let last = rig.events(id).await.pop().unwrap_or_default();
            for sum in [sums.entry(last).or_default(), &mut all] {
                sum.steps += 1;
                sum.time += time;
                sum.trips += trips;
                sum.most = sum.most.max(trips);
            }
        }
        rig.edge_follows().await;
        rig.hand.advance(Duration::from_secs(1));
    }
    let active = rig.count(sql("SELECT count(*) AS n FROM domains WHERE active_since IS NOT NULL")).await;
    println!("{active} of {DOMAINS} domains became active");
    println!("{:24} {:>6} {:>9} {:>11} {:>10}", "after the step", "steps", "us a step", "trips (avg)", "trips max");
    for (name, sum) in sums.iter().chain([(&"all steps".to_owned(), &all)]) {
        let (us, trips) = (sum.time.as_micros() / u128::from(sum.steps), f64::from(u32::try_from(sum.trips).unwrap()));
        println!("{name:24} {:>6} {us:>9} {:>11.1} {:>10}", sum.steps, trips / f64::from(sum.steps), sum.most);
    }
    let average = all.time / all.steps;
    if average > STEP || all.most > TRIPS || active != i64::try_from(DOMAINS).unwrap() {
        eprintln!("over its bounds: {average:?} a step (at most {STEP:?}), {} round trips (at most {TRIPS})", all.most);
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
