//! What a round of the dispatcher costs next to a queue of 7,000 orders of 1,000 tenants and a ledger of 8,500 rows, and next to
//! one of 420 orders of 10 tenants, on SQLite and on PostgreSQL.
//!
//! Run `./scripts/test only --release --bench rounds`, which starts a PostgreSQL; without one (`cargo bench --bench rounds`) SQLite
//! alone is measured. A round with no room comes by every ten seconds in every process; one with room for one every 36 s while
//! an import waits at Let's Encrypt; one with room for 300 is the first. It fails when a round with no room takes three times
//! as long next to the larger fleet at the median.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the real clock")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use nameplate::app::account::ensure_all;
use nameplate::app::dispatch::round;
use nameplate::store::{issuers, sql};

#[path = "../tests/it/support"]
mod support {
    pub mod fleet_seed;
    #[expect(dead_code, reason = "the tests use more of the rig than the benchmark does")]
    pub mod rig;
    #[expect(dead_code, reason = "the benchmark starts no CA")]
    pub mod services;
    #[expect(dead_code, reason = "the tests use more kinds of store than the benchmark does")]
    pub mod stores;
}

use support::fleet_seed;
use support::rig::{Rig, START};
use support::stores::{Kind, TestStore};

const ROUNDS: usize = 100;

/// Rounds with room for 300, for one, and for none: each sorted.
struct Measured([Vec<Duration>; 3]);

async fn timed(rig: &Rig) -> Duration {
    let began = Instant::now();
    round(&rig.app).await.unwrap();
    began.elapsed()
}

async fn granted(rig: &Rig) -> i64 {
    rig.app.store.query(sql("SELECT granted FROM issuers")).await.unwrap()[0].int("granted").unwrap()
}

/// The orders that were granted end with a certificate at once, as at a CA that answers quickly.
async fn issued(rig: &Rig, before: i64) {
    let given = granted(rig).await - before;
    let store = &rig.app.store;
    for stmt in [
        sql("UPDATE orders SET state = 'issued' WHERE state = 'granted'"),
        sql("UPDATE grants SET state = 'used' WHERE state = 'open'"),
        sql("DELETE FROM spends WHERE opened_at = $1").bind(rig.env.now()),
        sql("UPDATE ledger SET tat = CASE WHEN tat > $1 THEN tat ELSE $1 END + $2 WHERE key = 'account'")
            .bind(rig.env.now())
            .bind(given * 36_000_000),
    ] {
        store.execute(stmt).await.unwrap();
    }
}

async fn fleet(kind: Kind, domains: i64, tenants: i64) -> Measured {
    let test = TestStore::blank(kind).await;
    let rig = Rig::on(1, &test.url).await;
    ensure_all(&rig.app).await.unwrap();
    let issuer = issuers::list(&rig.app.store).await.unwrap().remove(0);
    fleet_seed::fill(&rig.app.store, &fleet_seed::parts(), (domains, tenants), issuer.id.as_str(), START).await;
    let first = vec![timed(&rig).await];
    issued(&rig, 0).await;
    let (mut one, mut none) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        none.push(timed(&rig).await);
        let before = granted(&rig).await;
        rig.hand.advance(Duration::from_secs(36));
        let took = timed(&rig).await;
        if granted(&rig).await == before + 1 {
            one.push(took);
        }
        issued(&rig, before).await;
    }
    one.sort();
    none.sort();
    drop(rig);
    test.remove().await;
    Measured([first, one, none])
}

fn ms(times: &[Duration], of: usize) -> f64 {
    times.get((times.len() * of / 100).min(times.len().saturating_sub(1))).map_or(0.0, |d| d.as_secs_f64() * 1_000.0)
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut kinds = vec![Kind::SqliteFile];
    if std::env::var_os("NAMEPLATE_TEST_POSTGRES_URL").is_some() {
        kinds.push(Kind::Postgres);
    }
    let mut grows = false;
    for kind in kinds {
        let few = fleet(kind, 6_000, 10).await;
        let many = fleet(kind, 100_000, 1_000).await;
        println!("{kind:?}: 420 orders wait, and 7,000");
        println!("{:24} {:>9} {:>9} {:>9} {:>9}", "", "p50 ms", "p99 ms", "p50 ms", "p99 ms");
        for (n, name) in ["room for 300, the first", "room for one", "no room"].iter().enumerate() {
            let (few, many) = (&few.0[n], &many.0[n]);
            println!("{name:24} {:>9.2} {:>9.2} {:>9.2} {:>9.2}", ms(few, 50), ms(few, 99), ms(many, 50), ms(many, 99));
        }
        grows |= ms(&many.0[2], 50) > 3.0 * ms(&few.0[2], 50);
    }
    if grows {
        eprintln!("a round that grants nothing grows with the queue");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
