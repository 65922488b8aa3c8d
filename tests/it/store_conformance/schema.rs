//! Migrations and what they leave.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nameplate::jobs::queue::Queue;
use nameplate::model::id::{AttemptId, IssuerId, OrderId};
use nameplate::model::limits::LimitName;
use nameplate::model::moment::Moment;
use nameplate::store::fleet::queue;
use nameplate::store::heads::heads;
use nameplate::store::{Schema, Store, StoreError, ledger, sql};

use crate::support::seed;
use crate::support::stores::{Kind, TestStore, for_each_blank_store};

#[tokio::test]
async fn migrating_twice_changes_nothing() {
    for_each_blank_store(async |test| {
        for _ in 0..2 {
            test.store.migrate().await.unwrap();
            Queue::migrate(&test.store).await.unwrap();
        }
        assert!(test.store.query(sql("SELECT id FROM domains")).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_schema_newer_than_the_program_is_refused() {
    for_each_blank_store(async |test| {
        test.store.migrate().await.unwrap();
        let (description, checksum) = ("of the next release", vec![0_u8; 48]);
        test.store
            .execute(
                sql("INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                     VALUES (99990101000001, $1, TRUE, $2, 0)")
                .bind(description)
                .bind(checksum),
            )
            .await
            .unwrap();
        let refusal = test.store.migrate().await.unwrap_err();
        let why = std::error::Error::source(&refusal).unwrap().to_string();
        assert!(why.contains("99990101000001") && why.contains("older than the schema"), "{why}");
    })
    .await;
}

#[test]
fn migrations_have_the_same_names_for_both_databases() {
    let names = |database: &str| -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(database);
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert!(!names("sqlite").is_empty());
    assert_eq!(names("sqlite"), names("postgres"));
}

/// Each index is paid for with every write; the rows of a hot table have many already.
#[tokio::test]
async fn no_two_indexes_are_the_same() {
    for_each_blank_store(async |test| {
        test.store.migrate().await.unwrap();
        let query = match test.store.sqlite_pool() {
            Some(_) => sql("SELECT name AS name, sql AS made FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"),
            None => sql("SELECT indexname::text AS name, indexdef AS made FROM pg_indexes WHERE schemaname = 'public'"),
        };
        let mut seen: BTreeMap<String, String> = BTreeMap::new();
        for row in test.store.query(query).await.unwrap() {
            let (name, made) = (row.text("name").unwrap(), row.text("made").unwrap());
            let on = made.split_once(" ON ").unwrap().1.split_whitespace().collect::<Vec<_>>().join(" ");
            let twin = seen.insert(on.clone(), name.clone());
            assert!(twin.is_none(), "{name} and {twin:?} are both on {on}");
        }
        assert!(seen.len() > 20, "{seen:?}");
    })
    .await;
}

/// Table → column → (type, may be null).
type Tables = BTreeMap<String, BTreeMap<String, (String, bool)>>;

async fn tables(kind: Kind, store: &Store) -> Tables {
    let columns = if kind == Kind::Postgres {
        sql("SELECT table_name::text AS tab, column_name::text AS col, data_type::text AS typ, \
               CASE WHEN is_nullable = 'YES' THEN 1 ELSE 0 END::bigint AS nullable \
             FROM information_schema.columns WHERE table_schema = 'public'")
    } else {
        sql("SELECT m.name AS tab, c.name AS col, c.type AS typ, \
               CASE WHEN c.\"notnull\" = 0 AND c.pk = 0 THEN 1 ELSE 0 END AS nullable \
             FROM sqlite_master m JOIN pragma_table_info(m.name) c \
             WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'")
    };
    let mut tables = Tables::new();
    for row in store.query(columns).await.unwrap() {
        let kind = match row.text("typ").unwrap().as_str() {
            "INTEGER" | "bigint" => "number",
            "TEXT" | "text" => "text",
            "BLOB" | "bytea" => "bytes",
            other => panic!("{} is {other}, which is none of the three types", row.text("col").unwrap()),
        };
        let column = (kind.to_owned(), row.int("nullable").unwrap() == 1);
        tables.entry(row.text("tab").unwrap()).or_default().insert(row.text("col").unwrap(), column);
    }
    tables
}

async fn indexes(kind: Kind, store: &Store) -> BTreeSet<(String, String, bool)> {
    let listing = if kind == Kind::Postgres {
        sql("SELECT c.relname::text AS name, t.relname::text AS tab, i.indisunique::int::bigint AS uniq \
             FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid \
               JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'public' \
             WHERE NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid)")
    } else {
        sql("SELECT l.name AS name, m.name AS tab, l.\"unique\" AS uniq \
             FROM sqlite_master m JOIN pragma_index_list(m.name) l WHERE m.type = 'table' AND l.origin = 'c'")
    };
    let rows = store.query(listing).await.unwrap();
    let read = rows.iter().map(|r| (r.text("name").unwrap(), r.text("tab").unwrap(), r.int("uniq").unwrap() == 1));
    read.collect()
}

#[tokio::test]
async fn both_databases_have_the_same_tables_columns_and_indexes() {
    let mut seen = Vec::new();
    for kind in [Kind::SqliteMemory, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        test.store.migrate().await.unwrap();
        test.store.execute(sql("DROP TABLE _sqlx_migrations")).await.unwrap();
        seen.push((tables(kind, &test.store).await, indexes(kind, &test.store).await));
        test.remove().await;
    }
    let (postgres, sqlite) = (seen.pop().unwrap(), seen.pop().unwrap());
    assert!(sqlite.0.contains_key("domains") && sqlite.1.iter().any(|(name, ..)| name == "domains_one_open_claim"));
    assert_eq!(sqlite.0, postgres.0);
    assert_eq!(sqlite.1, postgres.1);
}

/// The last schema before orders said whose they are.
const BEFORE_HEADS: i64 = 20_261_130_000_011;

/// A database that has been at work is brought up with all that it knows: whose an order is, what was spent, what the CA closed.
#[tokio::test]
async fn a_database_that_has_been_at_work_is_brought_up_with_what_it_knows() {
    for_each_blank_store(async |test| {
        let store = &test.store;
        match store.sqlite_pool() {
            Some(pool) => sqlx::migrate!("migrations/sqlite").run_to(BEFORE_HEADS, pool).await.unwrap(),
            None => sqlx::migrate!("migrations/postgres").run_to(BEFORE_HEADS, store.postgres_pool().unwrap()).await.unwrap(),
        }
        assert_eq!(store.schema().await.unwrap(), Schema::Older);
        let issuer = IssuerId::mint(Moment::from_secs(1), seed::bytes(1));
        store.execute(seed::issuer(&issuer)).await.unwrap();
        let orders: Vec<OrderId> = (0..3).map(|n| OrderId::mint(Moment::from_secs(1), seed::bytes(n))).collect();
        for (n, order) in (0..).zip(&orders) {
            store.execute(seed::tenant(&seed::tenant_id(n), &format!("t{n}"))).await.unwrap();
            let (id, name) = (seed::domain_id(n), format!("n{n}.acme.test"));
            store.execute(seed::domain(&id, &seed::tenant_id(n), &name, Moment::NEVER)).await.unwrap();
            let attempt = AttemptId::mint(Moment::from_secs(1), seed::bytes(n));
            let stmt = sql("UPDATE domains SET attempt_id = $2 WHERE id = $1").bind(id.as_str()).bind(attempt.as_str());
            store.execute(stmt).await.unwrap();
            let stmt = sql("INSERT INTO orders (id, domain_id, purpose, lane, issuer_id, state, state_since, not_before, created_at) \
                 VALUES ($1, $2, 'first', 'bulk', $3, 'waiting', 0, 0, 0)");
            store.execute(stmt.bind(order.as_str()).bind(id.as_str()).bind(issuer.as_str())).await.unwrap();
        }
        // One of them has its grant, and what that may come to spend; one waits for a limit of its own.
        for (text, order) in [
            ("UPDATE orders SET state = 'granted' WHERE id = $1", &orders[1]),
            ("UPDATE orders SET held_by = 'certificates_per_name', not_before = 7 WHERE id = $1", &orders[2]),
            (
                "INSERT INTO grants (id, issuer_id, order_id, granted_at, expires_at, state) \
                   SELECT 'grt_1', issuer_id, id, 1, 2, 'open' FROM orders WHERE id = $1",
                &orders[1],
            ),
            (
                "INSERT INTO spends (grant_id, issuer_id, limit_name, key, counts, interval_us, opened_at, deadline) \
                   SELECT 'grt_1', issuer_id, 'certificates_per_name', 'n1.acme.test', 'certificate', 5, 1, 2 FROM orders WHERE id = $1",
                &orders[1],
            ),
        ] {
            store.execute(sql(text).bind(order.as_str())).await.unwrap();
        }
        let closed = sql("INSERT INTO ledger (issuer_id, limit_name, key, tat, refusals, closed, said, link, closed_at) \
             VALUES ($1, $2, 'acme.test', 5, 3, 'paused_by_ca', 'too many', 'https://ca.test', 4), \
               ($1, $3, 'acme.test', 6, 0, NULL, NULL, NULL, NULL)");
        let (failed, domain) = (LimitName::FailuresPerName, LimitName::CertificatesPerDomain);
        store.execute(closed.bind(issuer.as_str()).bind(failed.as_str()).bind(domain.as_str())).await.unwrap();

        for _ in 0..2 {
            store.migrate().await.unwrap();
        }
        assert_eq!(store.schema().await.unwrap(), Schema::Current);
        let owners = "SELECT o.tenant_id AS owner, d.tenant_id AS tenant FROM orders o JOIN domains d ON d.id = o.domain_id";
        let rows = store.query(sql(owners)).await.unwrap();
        assert_eq!(rows.len(), 3);
        assert!(rows.iter().all(|row| row.text("owner").unwrap() == row.text("tenant").unwrap()));
        let mut tx = store.read().await.unwrap();
        let line = heads(&mut tx, &issuer, Moment::from_secs(1), 9).await.unwrap();
        assert_eq!(line.iter().map(|head| &head.waiting.order_id).collect::<Vec<_>>(), [&orders[0]]);
        let spent = ledger::of_keys(&mut tx, &issuer, ["acme.test", "n1.acme.test"]).await.unwrap();
        let told = |limit, key: &str| spent.get(&(limit, key.to_owned())).map(|bucket| (bucket.tat.micros(), bucket.open));
        assert_eq!(told(domain, "acme.test"), Some((6, 0)));
        assert_eq!(told(failed, "acme.test"), Some((5, 0)));
        assert_eq!(told(LimitName::CertificatesPerName, "n1.acme.test"), Some((0, 1)));
        let rows = queue::ledger(&mut tx, &issuer, 9).await.unwrap();
        let shut = rows.iter().find(|row| row.closed.is_some()).unwrap();
        assert_eq!((shut.said.as_deref(), shut.link.as_deref()), (Some("too many"), Some("https://ca.test")));
        drop(tx);
        let again = sql("INSERT INTO ledger (issuer_id, limit_name, key, tat) VALUES ($1, $2, 'acme.test', 9)");
        let twice = store.execute(again.bind(issuer.as_str()).bind(domain.as_str())).await;
        assert!(matches!(twice, Err(StoreError::Conflict { .. })), "{twice:?}");
    })
    .await;
}
