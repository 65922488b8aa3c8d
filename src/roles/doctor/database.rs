//! The database and what is sealed in it.

use std::path::Path;
use std::time::Duration;

use tokio::process::Command;

use super::super::{seal, store as stores};
use super::Report;
use crate::config::Config;
use crate::env::Env;
use crate::model::moment::Moment;
use crate::store::{Schema, Store, health, sql};
use crate::telemetry::Chain;

const PART: &str = "database";
/// A round trip that takes longer makes every step slow.
const SLOW: Duration = Duration::from_millis(50);
/// Megabytes below which a SQLite database is in danger, and in trouble.
const LITTLE_ROOM: u64 = 1024;
const NO_ROOM: u64 = 64;
/// How far two clocks may differ.
const CLOCK_WARN: i64 = 5;
const CLOCK_BROKEN: i64 = 60;

/// Looks at the database; it, where its schema can be read by this binary.
pub(super) async fn examine(config: &Config, env: &Env, report: &mut Report) -> Option<Store> {
    let url = config.database.url.expose_str().unwrap_or_default();
    // Opening would make the file.
    if let Some(file) = stores::sqlite_file(url).filter(|file| !file.exists()) {
        let advice = "run `nameplate migrate`, or set database.url to the file that is meant";
        report.broken(PART, "connection", format!("there is no file {}", file.display()), advice);
        return None;
    }
    let store = match stores::connect(config).await {
        Ok(store) => store,
        Err(e) => {
            let advice =
                "check that the database runs and that database.url names its host, port, user, password and database";
            report.broken(PART, "connection", Chain(&e).to_string(), advice);
            return None;
        }
    };
    if !itself(&store, env, report).await {
        store.close().await;
        return None;
    }
    let current = match store.schema().await {
        Ok(Schema::Current) => {
            report.ok(PART, "schema", "that of this binary");
            true
        }
        Ok(Schema::Older | Schema::Blank) => {
            let advice = "run `nameplate migrate` with this binary";
            report.broken(PART, "schema", "older than this binary's", advice);
            false
        }
        Ok(Schema::Newer) => {
            let advice = "install the newer release here too";
            report.broken(PART, "schema", "newer than this binary's", advice);
            false
        }
        Err(e) => {
            report.broken(PART, "schema", Chain(&e).to_string(), "check the database's own log");
            false
        }
    };
    if !current {
        report.skipped("vault", "master key", "the schema is not this binary's");
        store.close().await;
        return None;
    }
    match seal::sealed_under(&config.vault, &store).await {
        Ok(Some(version)) => report.ok("vault", "master key", format!("opens what is sealed under version {version}")),
        Ok(None) => report.ok("vault", "master key", "readable; nothing is sealed yet"),
        Err(e) => {
            let advice = "give vault.master_key or vault.master_key_file the key that this database was started with";
            report.broken("vault", "master key", Chain(&e).to_string(), advice);
        }
    }
    Some(store)
}

/// Version, durability, latency, clock and room; whether it answers at all.
async fn itself(store: &Store, env: &Env, report: &mut Report) -> bool {
    let health = match health::of(store).await {
        Ok(health) => health,
        Err(e) => {
            let advice = "check that database.url names a database of Nameplate's, and the database's own log";
            report.broken(PART, "connection", Chain(&e).to_string(), advice);
            return false;
        }
    };
    report.ok(PART, "connection", health.version);
    let begun = env.now();
    if store.query(sql("SELECT 1 AS one")).await.is_ok() {
        let took = env.now().since(begun);
        let seen = format!("a round trip takes {:.1} ms", took.as_secs_f64() * 1000.0);
        match took > SLOW {
            true => report.warn(PART, "latency", seen, "bring control plane and database closer together"),
            false => report.ok(PART, "latency", seen),
        }
    }
    if let Ok(false) = health::takes_writes(store).await {
        let advice = "name the primary in database.url, or turn default_transaction_read_only off there";
        report.broken(PART, "writes", "it is read-only", advice);
    }
    match health.durable {
        true => report.ok(PART, "durability", health.durability),
        false => {
            let advice = "turn fsync, full_page_writes and synchronous_commit on: what was acknowledged must survive a power cut, \
                          or the CA's limits are overspent";
            report.broken(PART, "durability", health.durability, advice);
        }
    }
    if let Some(theirs) = health.now {
        clock("the database's clock", theirs, env.now(), report);
    }
    if let Some(file) = health.file {
        room(&file, report).await;
    }
    true
}

/// Holds a clock against ours.
pub(super) fn clock(whose: &str, theirs: Moment, ours: Moment, report: &mut Report) {
    let apart = (ours.micros() - theirs.micros()) / 1_000_000;
    let seen = match apart {
        0 => "agrees with ours".to_owned(),
        n if n > 0 => format!("{n} s behind ours"),
        n => format!("{} s ahead of ours", -n),
    };
    let advice =
        "keep this machine's time with NTP (timedatectl set-ntp true) and restart Nameplate: it reads the time once";
    match apart.abs() {
        0..CLOCK_WARN => report.ok("clock", whose, seen),
        CLOCK_WARN..CLOCK_BROKEN => report.warn("clock", whose, seen, advice),
        _ => report.broken("clock", whose, seen, advice),
    }
}

async fn room(file: &Path, report: &mut Report) {
    let what = format!("room for {}", file.display());
    let output = Command::new("df").arg("-Pk").arg(file).env("LC_ALL", "C").output().await;
    let free = output.ok().filter(|o| o.status.success()).and_then(|o| free_megabytes(&String::from_utf8_lossy(&o.stdout)));
    match free {
        None => report.skipped(PART, what, "df could not tell"),
        Some(mb) => judge_room(what, mb, report),
    }
}

fn judge_room(what: String, mb: u64, report: &mut Report) {
    let (seen, advice) = (format!("{mb} MB free"), "free some space, or move the database to a larger disk");
    match mb {
        0..NO_ROOM => report.broken(PART, what, seen, advice),
        NO_ROOM..LITTLE_ROOM => report.warn(PART, what, seen, advice),
        _ => report.ok(PART, what, seen),
    }
}

/// The fourth column of the second line, in kilobytes (POSIX df -P).
fn free_megabytes(df: &str) -> Option<u64> {
    df.lines().nth(1)?.split_whitespace().nth(3)?.parse::<u64>().ok().map(|kb| kb / 1024)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Verdict;
    use super::*;

    #[test]
    fn room_is_read_from_df_and_judged() {
        let df = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/sda1 100 50 2097152 50% /\n";
        assert_eq!(free_megabytes(df), Some(2048));
        for (mb, verdict) in [(10, Verdict::Broken), (500, Verdict::Warning), (5000, Verdict::Ok)] {
            let mut report = Report::default();
            judge_room("room".to_owned(), mb, &mut report);
            assert_eq!(report.findings[0].verdict, verdict, "{mb}");
        }
    }

    #[test]
    fn clocks_are_held_against_each_other_both_ways() {
        for (apart, verdict) in
            [(0, Verdict::Ok), (-4, Verdict::Ok), (10, Verdict::Warning), (-61, Verdict::Broken), (3600, Verdict::Broken)]
        {
            let mut report = Report::default();
            let ours = Moment::from_secs(1_800_000_000);
            clock("x", Moment::from_secs(1_800_000_000 - apart), ours, &mut report);
            assert_eq!(report.findings[0].verdict, verdict, "{apart}: {:?}", report.findings);
        }
    }

    proptest! {
        #[test]
        fn df_of_any_shape_is_read_without_a_panic(text in any::<String>()) {
            let _ = free_megabytes(&text);
        }
    }
}
