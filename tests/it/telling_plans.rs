//! How both databases run what watchers, senders and the pruning ask for, every second or every twenty: by an index that is right
//! though the database knows nothing of itself.

use nameplate::store::Store;
use sqlx::{AssertSqlSafe, Row as _};

use crate::fleet_plans::read;
use crate::store_conformance::statements::Found;
use crate::support::stores::{Kind, TestStore};

/// The files whose statements run all the time.
const FILES: &[&str] = &[
    "src/store/alerts.rs",
    "src/store/expiry.rs",
    "src/store/risks.rs",
    "src/store/telling.rs",
    "src/store/deliveries.rs",
    "src/store/webhooks.rs",
    "src/store/mail_items.rs",
    "src/store/retention.rs",
];
/// Tables that grow with the fleet, or with time.
const LARGE: &[&str] = &[
    "domains",
    "certificates",
    "orders",
    "events",
    "alerts",
    "alert_events",
    "told",
    "deliveries",
    "mail_items",
    "expiry_looks",
];
/// Where all of something is meant: every name looked at once after the thresholds changed; the list of open alerts of all tenants,
/// which walks its key from the newest and stops; every place of all tenants, likewise.
const MEANT: &[&str] = &[
    "UPDATE expiry_looks SET due_at = 0, touched = touched + 1",
    "FROM alerts a LEFT JOIN domains d ON d.id = a.domain_id WHERE ($1 = '' OR a.id < $1)",
    "JOIN certificates c ON c.id = COALESCE(a.certificate_id, d.certificate_id) WHERE a.resolved_at IS NULL",
];

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

async fn plan(store: &Store, text: &str) -> Vec<String> {
    if let Some(pool) = store.sqlite_pool() {
        let rows = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {text}"))).fetch_all(pool).await.unwrap();
        return rows.iter().map(|row| row.get::<String, _>("detail")).collect();
    }
    let mut tx = store.postgres_pool().unwrap().begin().await.unwrap();
    // An empty table is read whole by anybody; what is asked is whether it would have to be.
    for setting in ["SET LOCAL enable_seqscan = off", "SET LOCAL plan_cache_mode = force_generic_plan"] {
        sqlx::query(setting).execute(&mut *tx).await.unwrap();
    }
    sqlx::query(AssertSqlSafe(format!("PREPARE asked AS {text}"))).execute(&mut *tx).await.unwrap();
    let count = (1..).take_while(|n| text.contains(&format!("${n}"))).count();
    let values = if count == 0 { String::new() } else { format!("({})", vec!["NULL"; count].join(", ")) };
    let rows = sqlx::query(AssertSqlSafe(format!("EXPLAIN EXECUTE asked{values}"))).fetch_all(&mut *tx).await.unwrap();
    let lines = rows.iter().map(|row| row.get::<String, _>(0)).collect();
    sqlx::query("DEALLOCATE asked").execute(&mut *tx).await.unwrap();
    lines
}

/// The tables that a text calls by an alias: `alerts a`, `JOIN domains AS d`.
fn called(text: &str, alias: &str) -> Option<String> {
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| !w.is_empty()).collect();
    if LARGE.contains(&alias) {
        return Some(alias.to_owned());
    }
    words.windows(2).find(|pair| pair[1] == alias && LARGE.contains(&pair[0])).map(|pair| pair[0].to_owned())
}

/// Steps that read a large table from end to end; an index that holds only what is asked for is no such thing.
fn whole(kind: Kind, text: &str, plan: &[String]) -> Vec<String> {
    let mark = if kind == Kind::Postgres { "Seq Scan on " } else { "SCAN " };
    let reads = |line: &&String| {
        let Some((_, rest)) = line.split_once(mark) else { return false };
        let name = rest.split_whitespace().next().unwrap_or_default();
        let partial = ["alerts_open", "alerts_of_platform", "mail_items_waiting", "mail_items_tried"];
        called(text, name).is_some() && !partial.iter().any(|index| rest.contains(index))
    };
    plan.iter().filter(reads).cloned().collect()
}

#[tokio::test]
async fn whoever_watches_sends_or_prunes_reads_no_whole_table() {
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for kind in [Kind::SqliteMemory, Kind::Postgres] {
        let test = TestStore::migrated(kind).await;
        for Found { place, text } in FILES.iter().flat_map(|file| read(file)) {
            let line = one_line(&text);
            if MEANT.iter().any(|meant| line.contains(meant)) {
                continue;
            }
            let plan = plan(&test.store, &text).await;
            asked += 1;
            if !whole(kind, &line, &plan).is_empty() {
                wrong.push(format!("{place} on {kind:?}: {line}\n    {}", plan.join("\n    ")));
            }
        }
        test.remove().await;
    }
    assert!(asked > 100, "{asked} statements were asked about");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The steps that every pass takes are the ones that were meant.
#[tokio::test]
async fn every_pass_takes_the_index_that_was_made_for_it() {
    let test = TestStore::migrated(Kind::SqliteMemory).await;
    let all: Vec<Found> = FILES.iter().flat_map(|file| read(file)).collect();
    for (part, index) in [
        ("SELECT l.domain_id, l.touched", "expiry_looks_due (due_at<?)"),
        ("FROM rollout_exceptions x CROSS JOIN domains d", "domains_by_certificate (certificate_id=?)"),
        ("WHERE a.domain_id = $1 AND a.resolved_at IS NULL ORDER BY a.id", "alerts_once (domain_id=?)"),
        ("SELECT cause, count(*)", "COVERING INDEX alerts_open"),
        ("AS latest FROM alert_events v", "alerts_open_topic (topic=?)"),
        ("SELECT MIN(endpoint_id) FROM deliveries", "(endpoint_id>?"),
        ("SELECT d.event_id, d.attempts, w.failures", "deliveries_in_order (endpoint_id=? AND subject=? AND position<?)"),
        ("SELECT MIN(address) FROM mail_items", "mail_items_waiting (address>?)"),
        ("SELECT MAX(done_at) AS at FROM mail_items", "mail_items_sent (address=?)"),
        ("SELECT MIN(created_at) AS at FROM mail_items", "mail_items_tried (created_at<?)"),
        ("FROM deliveries d WHERE d.done_at < $1", "deliveries_done (done_at<?)"),
        ("FROM alerts a WHERE a.resolved_at < $1", "alerts_over (resolved_at<?)"),
    ] {
        let found: Vec<&Found> = all.iter().filter(|found| one_line(&found.text).contains(part)).collect();
        assert_eq!(found.len(), 1, "{part}: {:?}", found.iter().map(|f| &f.place).collect::<Vec<_>>());
        let plan = plan(&test.store, &found[0].text).await;
        assert!(plan.iter().any(|line| line.contains(index)), "{part} without {index}:\n{}", plan.join("\n"));
    }
    test.remove().await;
}
