//! How both databases would run what pages, API, lists and the dispatcher ask for: by an index, never through a whole table.

use std::fs;
use std::path::Path;

use nameplate::store::{Store, sql};
use sqlx::{AssertSqlSafe, Row as _};

use crate::store_conformance::statements::{Found, statements};
use crate::support::fleet_seed;
use crate::support::rig::START;
use crate::support::seed;
use crate::support::stores::{Kind, TestStore};

/// The files whose statements a page or a list of the API runs.
const ASKED_BY_PAGES: &[&str] = &[
    "src/store/views.rs",
    "src/store/portal.rs",
    "src/store/links.rs",
    "src/store/sessions.rs",
    "src/store/fleet/lists.rs",
    "src/store/fleet/one.rs",
    "src/store/fleet/queue.rs",
];
/// The files whose statements every round of the dispatcher runs.
const ASKED_BY_ROUNDS: &[&str] = &["src/store/heads.rs", "src/store/ledger.rs", "src/store/dispatching.rs"];
/// The files whose statements a step, a lap or an edge's question runs.
const ASKED_BY_STEPS: &[&str] = &[
    "src/store/attempts.rs",
    "src/store/claims.rs",
    "src/store/domain_row.rs",
    "src/store/feed.rs",
    "src/store/holdings.rs",
    "src/store/lap.rs",
    "src/store/pairs.rs",
    "src/store/record.rs",
    "src/store/resting.rs",
    "src/store/revocations.rs",
    "src/store/rollout.rs",
    "src/store/routine.rs",
    "src/store/situation.rs",
];
/// What reads a feed from its beginning reads all of it.
const FROM_THE_BEGINNING: &[&str] =
    &["FROM routes r JOIN tenants", "FROM tenants", "FROM certificates c LEFT JOIN certificate_names"];
/// Where a name is let go of, all that it had is gone through once.
const AT_THE_END: &[&str] = &["UPDATE orders SET sealed_key = NULL WHERE domain_id = $1", "INSERT INTO revocations"];
/// The counts of the snapshot read a covering index from end to end, and no row of the table.
const COUNTS: &str = "src/store/fleet/counts.rs";
/// The tables that grow with the fleet.
const LARGE: &[&str] = &["domains", "events", "orders", "certificates", "attempts", "domain_words", "outbox", "grants"];
/// The tables that grow with what is issued in a week; no statement calls them by one letter.
const SPENT: &[&str] = &["ledger", "spends"];
/// Who plays the whole queue reads all open spends: some for each order that is under way.
const OPEN_SPENDS: &str = "AS open FROM spends WHERE issuer_id = $1 GROUP BY limit_name, key";

pub fn read(file: &str) -> Vec<Found> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let found = statements(file, &fs::read_to_string(path).unwrap());
    assert!(!found.is_empty(), "no statement in {file}");
    found
}

async fn seeded(kind: Kind) -> TestStore {
    let test = TestStore::migrated(kind).await;
    let issuer = nameplate::model::id::IssuerId::mint(START, [1; 10]);
    test.store.execute(seed::issuer(&issuer)).await.unwrap();
    fleet_seed::fill(&test.store, &fleet_seed::parts(), (6_000, 60), issuer.as_str(), START).await;
    // A table of a few pages is read whole by anybody.
    for stmt in [
        sql("INSERT INTO spends (grant_id, issuer_id, limit_name, key, interval_us, opened_at, deadline, counts) \
             SELECT id, issuer_id, 'failures_per_name', 'name-of-' || id, 1, 0, granted_at, 'order' FROM grants"),
        sql("INSERT INTO ledger (issuer_id, limit_name, key, tat, refusals) \
             SELECT issuer_id, 'failures_per_name', 'name-of-' || id, granted_at, 0 FROM grants"),
    ] {
        test.store.execute(stmt).await.unwrap();
    }
    fleet_seed::analyze(&test.store).await;
    test
}

/// What the database would do, one line a step.
async fn plan(store: &Store, text: &str) -> Vec<String> {
    if let Some(pool) = store.sqlite_pool() {
        let rows = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {text}"))).fetch_all(pool).await.unwrap();
        return rows.iter().map(|row| row.get::<String, _>("detail")).collect();
    }
    let pool = store.postgres_pool().unwrap();
    let mut tx = pool.begin().await.unwrap();
    // A statement is planned before its values are known, as the tenth run of a prepared one may be.
    sqlx::query("SET LOCAL plan_cache_mode = force_generic_plan").execute(&mut *tx).await.unwrap();
    sqlx::query(AssertSqlSafe(format!("PREPARE asked AS {text}"))).execute(&mut *tx).await.unwrap();
    let count = (1..).take_while(|n| text.contains(&format!("${n}"))).count();
    let values = if count == 0 { String::new() } else { format!("({})", vec!["NULL"; count].join(", ")) };
    let rows = sqlx::query(AssertSqlSafe(format!("EXPLAIN EXECUTE asked{values}"))).fetch_all(&mut *tx).await.unwrap();
    let lines = rows.iter().map(|row| row.get::<String, _>(0)).collect();
    sqlx::query("DEALLOCATE asked").execute(&mut *tx).await.unwrap();
    lines
}

/// The steps of a plan that read a large table from end to end.
fn whole_tables(plan: &[String]) -> Vec<&String> {
    let names = |line: &str, before: &str| {
        line.split_once(before).is_some_and(|(_, rest)| {
            let table = rest.split_whitespace().next().unwrap_or_default();
            LARGE.contains(&table)
                || SPENT.contains(&table)
                || LARGE.iter().any(|large| large.starts_with(table) && table.len() == 1)
        })
    };
    // PostgreSQL says `Seq Scan on domains d`; SQLite says `SCAN d` for what it does not search.
    plan.iter().filter(|line| names(line, "Seq Scan on ") || names(line, "SCAN ")).collect()
}

#[tokio::test]
async fn no_statement_of_a_page_reads_a_whole_table() {
    let mut wrong = Vec::new();
    let mut asked = 0;
    for kind in [Kind::SqliteMemory, Kind::Postgres] {
        let test = seeded(kind).await;
        for Found { place, text } in ASKED_BY_PAGES.iter().chain(ASKED_BY_ROUNDS).flat_map(|file| read(file)) {
            let plan = plan(&test.store, &text).await;
            asked += 1;
            // The list of all domains, and the stream of all events, walk their key and stop at their limit.
            let by_key = |line: &&String| line.contains("USING INDEX") || line.contains("USING COVERING INDEX");
            let slow: Vec<&String> = whole_tables(&plan).into_iter().filter(|line| !by_key(line)).collect();
            if text.ends_with(OPEN_SPENDS) {
                continue;
            }
            if !slow.is_empty() {
                wrong.push(format!("{place} on {kind:?}: {}\n    {}", text, plan.join("\n    ")));
            }
        }
        test.remove().await;
    }
    assert!(asked > 40, "{asked} statements were asked about");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A database that was never analysed, as a new one is when a large import comes, takes a state for as narrow as a hostname.
#[tokio::test]
async fn no_step_goes_through_all_that_wait_on_a_database_that_knows_nothing_of_itself() {
    let test = TestStore::migrated(Kind::SqliteMemory).await;
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for Found { place, text } in ASKED_BY_STEPS.iter().flat_map(|file| read(file)) {
        let plan = plan(&test.store, &text).await;
        asked += 1;
        let by_state_alone = plan.iter().any(|line| line.contains("domains_by_claim (claim=?)"));
        // What a table is asked for its references is asked only while some are broken.
        let of_its_own = |table: &&&str| text.contains(**table);
        let whole = ["domains", "routes", "challenges", "orders", "events"]
            .iter()
            .filter(of_its_own)
            .any(|table| plan.contains(&format!("SCAN {table}")));
        let all_of_it = FROM_THE_BEGINNING.iter().any(|from| text.contains(from)) && !text.contains("outbox");
        if by_state_alone || (whole && !all_of_it) {
            wrong.push(format!("{place}: {text}\n    {}", plan.join("\n    ")));
        }
    }
    test.remove().await;
    assert!(asked > 40, "{asked} statements were asked about");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Years of renewals leave a domain rows by the hundred: a step reads the one that is open, or in use, and none that is done with.
#[tokio::test]
async fn no_step_goes_through_the_past_of_its_domain() {
    for test in [TestStore::migrated(Kind::SqliteMemory).await, seeded(Kind::SqliteMemory).await] {
        let (mut wrong, mut asked) = (Vec::new(), 0);
        for Found { place, text } in ASKED_BY_STEPS.iter().flat_map(|file| read(file)) {
            let plan = plan(&test.store, &text).await;
            asked += 1;
            let past = |line: &String| {
                ["orders_by_domain (domain_id=?)", "certificates_by_domain (domain_id=?)", "events_by_domain (domain_id=?)"]
                    .iter()
                    .any(|index| line.contains(index))
            };
            let once = AT_THE_END.iter().any(|end| text.starts_with(end));
            if !once && plan.iter().any(past) {
                wrong.push(format!("{place}: {text}\n    {}", plan.join("\n    ")));
            }
        }
        test.remove().await;
        assert!(asked > 40, "{asked} statements were asked about");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// What an edge has not heard of yet is found by its number, however many changes the outbox keeps.
#[tokio::test]
async fn the_news_of_edges_are_found_by_their_numbers() {
    for (kind, by_number) in [(Kind::SqliteMemory, "(seq>? AND seq<?)"), (Kind::Postgres, "((seq > ")] {
        let test = TestStore::migrated(kind).await;
        for (n, kind) in (1..=6_000).zip(["host", "challenge", "certificate", "tenant"].into_iter().cycle()) {
            let row = sql("INSERT INTO outbox (id, seq, kind, subject, version, at) VALUES ($1, $2, $3, $4, 1, 0)");
            let row = row.bind(format!("{n:06}")).bind(i64::from(n)).bind(kind).bind(format!("subject-{}", n % 700));
            test.store.execute(row).await.unwrap();
        }
        let mut asked = 0;
        // A database that knows nothing of itself, and one that knows all.
        for _ in 0..2 {
            for Found { place, text } in read("src/store/feed.rs").iter().filter(|found| found.text.contains("seq <= $2")) {
                let plan = plan(&test.store, text).await;
                asked += 1;
                let of_outbox = |line: &&String| line.contains("outbox") || line.contains("seq");
                assert!(
                    plan.iter().filter(of_outbox).any(|line| line.contains(by_number))
                        && !plan.iter().any(|line| line.contains("outbox_by_subject")),
                    "{place} on {kind:?}:\n{}",
                    plan.join("\n")
                );
            }
            fleet_seed::analyze(&test.store).await;
        }
        assert!(asked >= 8, "{asked} statements were asked about");
        test.remove().await;
    }
}

/// The daily walk reads the names of its slots in their order, and goes by no others, also where a database knows nothing of itself.
#[tokio::test]
async fn the_daily_walk_finds_its_names_by_their_slots() {
    let of_sqlite = "domains_by_slot (claim=? AND <expr>>? AND <expr><?)";
    for (test, by_slot) in [
        (TestStore::migrated(Kind::SqliteMemory).await, of_sqlite),
        (seeded(Kind::SqliteMemory).await, of_sqlite),
        (seeded(Kind::Postgres).await, "using domains_by_slot on domains"),
    ] {
        let found = read("src/store/routine.rs").into_iter().find(|found| found.text.contains("ORDER BY substr")).unwrap();
        let plan = plan(&test.store, &found.text).await;
        assert!(plan.iter().any(|line| line.contains(by_slot)), "{:?}:\n{}", test.kind, plan.join("\n"));
        let sorts = |line: &String| ["Sort", "B-TREE", "Filter: (claim"].iter().any(|step| line.contains(step));
        assert!(!plan.iter().any(sorts), "{:?}:\n{}", test.kind, plan.join("\n"));
        test.remove().await;
    }
}

/// Of a line only its first order is read, and of the ledger only the keys that were asked for.
#[tokio::test]
async fn a_round_finds_lines_and_keys_by_their_own_index() {
    for kind in [Kind::SqliteMemory, Kind::Postgres] {
        let test = seeded(kind).await;
        for Found { place, text } in read("src/store/heads.rs") {
            let plan = plan(&test.store, &text).await;
            let of_orders = |line: &&String| [" on orders ", "SEARCH o ", "SCAN o "].iter().any(|step| line.contains(step));
            let by_line = |line: &&String| line.contains("orders_in_line");
            let by_id = |line: &&String| line.contains("orders_pkey") || line.contains("sqlite_autoindex_orders_1");
            assert!(
                plan.iter().filter(of_orders).all(|line| by_line(&line) || by_id(&line))
                    && plan.iter().any(|line| by_line(&line)),
                "{place} on {kind:?}:\n{}",
                plan.join("\n")
            );
        }
        let by_key = read("src/store/ledger.rs").into_iter().find(|found| found.text.contains("key IN (")).unwrap();
        let plan = plan(&test.store, &by_key.text).await;
        let keys = if kind == Kind::Postgres { "(issuer_id = $1) AND (key = ANY" } else { "(issuer_id=? AND key=?)" };
        assert_eq!(plan.iter().filter(|line| line.contains(keys)).count(), 2, "{kind:?}:\n{}", plan.join("\n"));
        test.remove().await;
    }
}

/// Who waits under the registered domains of an import is found by name, on a database that knows all of itself and on one that
/// knows nothing.
#[tokio::test]
async fn the_plan_of_an_import_finds_who_waits_by_their_words() {
    for kind in [Kind::SqliteMemory, Kind::Postgres] {
        let (known, new) = (seeded(kind).await, TestStore::migrated(kind).await);
        let crowds = read("src/store/bulk_rows.rs").into_iter().find(|found| found.text.contains("domain_words")).unwrap();
        for (test, knows) in [(&known, true), (&new, false)] {
            let plan = plan(&test.store, &crowds.text).await;
            let by = |index: &str| plan.iter().any(|line| line.contains(index));
            let words = if kind == Kind::Postgres { "(word = " } else { "domain_words_1 (word=?)" };
            // PostgreSQL reads a table of no pages whole, whatever is asked.
            if kind == Kind::SqliteMemory || knows {
                assert!(by(words) && whole_tables(&plan).is_empty(), "{kind:?}, {knows}:\n{}", plan.join("\n"));
                assert!(!by("domains_by_claim") && !by("orders_waiting"), "{kind:?}, {knows}:\n{}", plan.join("\n"));
            }
        }
        known.remove().await;
        new.remove().await;
    }
}

#[tokio::test]
async fn lists_come_out_of_their_index_in_order() {
    for kind in [Kind::SqliteMemory, Kind::Postgres] {
        let test = seeded(kind).await;
        for Found { place, text } in read("src/store/fleet/lists.rs") {
            let plan = plan(&test.store, &text).await;
            let sorted = plan.iter().any(|line| {
                line.contains("TEMP B-TREE") || line.trim_start().starts_with("->  Sort") || line.starts_with("Sort")
            });
            // The claims on one hostname are few: they may be sorted.
            assert!(!sorted || text.contains("d.hostname = $1"), "{place} on {kind:?} sorts:\n{}", plan.join("\n"));
        }
        test.remove().await;
    }
}

#[tokio::test]
async fn counts_read_an_index_and_no_row() {
    for kind in [Kind::SqliteMemory, Kind::Postgres] {
        let test = seeded(kind).await;
        for Found { place, text } in read(COUNTS) {
            let plan = plan(&test.store, &text).await;
            let covered = plan.iter().any(|line| line.contains("COVERING INDEX") || line.contains("Index Only Scan"));
            assert!(covered, "{place} on {kind:?}:\n{}", plan.join("\n"));
            assert!(!plan.iter().any(|line| line.contains("Seq Scan")), "{place} on {kind:?}:\n{}", plan.join("\n"));
        }
        test.remove().await;
    }
}

/// The fleet that these tests and the benchmark fill is one that the model would have written.
#[tokio::test]
async fn the_seeded_fleet_stands_where_the_model_says() {
    let test = seeded(Kind::SqliteMemory).await;
    let stmt = sql("SELECT d.*, o.state AS order_state FROM domains d LEFT JOIN orders o ON o.domain_id = d.id");
    let rows = test.store.query(stmt).await.unwrap();
    assert_eq!(rows.len(), 6_000);
    for row in rows {
        let mut domain = nameplate::store::situation::domain(&row).unwrap();
        let order = row.opt_parse("order_state").unwrap();
        let written = row.text("standing").unwrap();
        if written == "rolling_out" {
            domain.active_since = None;
        }
        assert_eq!(nameplate::model::standing::of_row(&domain, order, None).code(), written, "{}", domain.id);
    }
    test.remove().await;
}
