//! Batches, values, isolation, and what survives a cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use nameplate::model::id::DomainId;
use nameplate::model::moment::Moment;
use nameplate::store::{Stmt, Store, StoreError, sql};

use crate::support::seed::{self, tenant_id};
use crate::support::stores::{Kind, for_each_store, until};

fn contact(id: &str, tenant: Option<&str>, email: &str) -> Stmt {
    sql("INSERT INTO contacts (id, tenant_id, email, kinds, created_at) VALUES ($1, $2, $3, '[]', $4)")
        .bind(id)
        .bind(tenant)
        .bind(email)
        .bind(7_i64)
}

async fn count(store: &Store, stmt: Stmt) -> i64 {
    store.fetch_optional(stmt).await.unwrap().unwrap().int("n").unwrap()
}

async fn contacts(store: &Store) -> i64 {
    count(store, sql("SELECT COUNT(*) AS n FROM contacts")).await
}

#[tokio::test]
async fn a_batch_counts_each_statement_and_binds_each_its_own_values() {
    for_each_store(async |test| {
        let mut tx = test.store.begin().await.unwrap();
        assert_eq!(tx.batch(Vec::new()).await.unwrap(), Vec::<u64>::new());
        let inserted = tx.batch(vec![contact("a", None, "a@x"), contact("b", None, "b@x"), contact("c", None, "c@x")]).await;
        assert_eq!(inserted.unwrap(), [1, 1, 1]);
        let changed = tx
            .batch(vec![
                sql("UPDATE contacts SET email = $2 WHERE id = $1").bind("a").bind("new@x"),
                sql("UPDATE contacts SET email = $1 WHERE id = $2 AND email = $3").bind("no@x").bind("b").bind("other"),
                sql("DELETE FROM contacts WHERE id IN ($1, $2)").bind("c").bind("d"),
                sql("INSERT INTO contacts (id, email, kinds, created_at) VALUES ($1, $1, $2, $3) ON CONFLICT (id) DO NOTHING")
                    .bind("b")
                    .bind("[]")
                    .bind(1_i64),
            ])
            .await;
        assert_eq!(changed.unwrap(), [1, 0, 1, 0]);
        tx.commit().await.unwrap();
        let rows = test.store.query(sql("SELECT id, email FROM contacts ORDER BY id")).await.unwrap();
        let read: Vec<_> = rows.iter().map(|r| (r.text("id").unwrap(), r.text("email").unwrap())).collect();
        assert_eq!(read, [("a".into(), "new@x".into()), ("b".into(), "b@x".into())]);
    })
    .await;
}

#[tokio::test]
async fn a_batch_that_fails_leaves_nothing_and_neither_does_a_dropped_transaction() {
    for_each_store(async |test| {
        let mut tx = test.store.begin().await.unwrap();
        let twice = tx.batch(vec![contact("a", None, "a@x"), contact("a", None, "b@x")]).await;
        assert!(matches!(twice, Err(StoreError::Conflict { .. })), "{twice:?}");
        drop(tx);
        let mut tx = test.store.begin().await.unwrap();
        tx.execute(contact("b", None, "b@x")).await.unwrap();
        drop(tx);
        assert_eq!(contacts(&test.store).await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_statement_with_a_value_too_few_or_too_many_runs_nowhere() {
    for_each_store(async |test| {
        let short = || sql("INSERT INTO contacts (id, email, kinds, created_at) VALUES ($1, $1, '[]', $2)").bind("a");
        let long = sql("DELETE FROM contacts WHERE id = $1").bind("a").bind("b");
        assert!(test.store.execute(short()).await.is_err());
        assert!(test.store.query(long).await.is_err());
        let mut tx = test.store.begin().await.unwrap();
        assert!(tx.batch(vec![short(), contact("b", None, "b@x")]).await.is_err());
        drop(tx);
        assert_eq!(contacts(&test.store).await, 0);
    })
    .await;
}

#[tokio::test]
async fn nulls_numbers_and_bytes_come_back_as_they_went_in() {
    for_each_store(async |test| {
        let token = |id: &'static str, digest: &[u8], used: Option<Moment>| {
            sql("INSERT INTO tokens (id, scope, tenant_id, label, digest, created_at, used_at) \
                 VALUES ($1, 'operator', $2, $3, $4, $5, $6)")
            .bind(id)
            .bind(None::<&str>)
            .bind("ünïcode '; --")
            .bind(digest)
            .bind(i64::MIN)
            .bind(used)
        };
        let mut tx = test.store.begin().await.unwrap();
        tx.batch(vec![token("a", &[0, 255, 128], None), token("b", &[], Some(Moment::NEVER))]).await.unwrap();
        tx.commit().await.unwrap();
        let rows = test.store.query(sql("SELECT * FROM tokens ORDER BY id")).await.unwrap();
        assert_eq!(rows[0].blob("digest").unwrap(), [0, 255, 128]);
        assert_eq!(rows[0].opt_moment("used_at").unwrap(), None);
        assert_eq!(rows[0].opt_text("tenant_id").unwrap(), None);
        assert_eq!(rows[0].text("label").unwrap(), "ünïcode '; --");
        assert_eq!(rows[0].int("created_at").unwrap(), i64::MIN);
        assert_eq!(rows[1].opt_blob("digest").unwrap(), Some(Vec::new()));
        assert_eq!(rows[1].moment("used_at").unwrap(), Moment::NEVER);
        let odd = rows[0].parse::<DomainId>("label").unwrap_err();
        assert!(matches!(odd, StoreError::Inconsistent { ref column, .. } if column == "label"), "{odd:?}");
        assert!(matches!(rows[0].text("no_such"), Err(StoreError::Inconsistent { .. })));
        assert!(matches!(rows[0].int("label"), Err(StoreError::Inconsistent { .. })));
        assert!(matches!(rows[0].moment("used_at"), Err(StoreError::Inconsistent { .. })));
    })
    .await;
}

/// B61: a transaction that reads and then writes takes its turn from the start.
#[tokio::test]
async fn b61_fifty_transactions_that_read_and_then_write_all_succeed() {
    for_each_store(async |test| {
        test.store.execute(seed::tenant(&tenant_id(0), "acme")).await.unwrap();
        let other = test.reopened().await;
        let add = async |store: &Store| {
            let mut tx = store.begin().await?;
            let read = sql("SELECT version FROM tenants WHERE id = $1").bind(tenant_id(0).as_str());
            let seen = tx.fetch_optional(read).await?.unwrap().int("version")?;
            let raise = sql("UPDATE tenants SET version = version + 1 WHERE id = $1").bind(tenant_id(0).as_str());
            assert!(seen >= 1 && tx.execute(raise).await? == 1);
            tx.commit().await
        };
        let stores: Vec<&Store> = [&test.store].into_iter().chain(other.as_ref()).collect();
        let done = join_all((0..50).map(|n| add(stores[n % stores.len()]))).await;
        let failed: Vec<_> = done.into_iter().filter_map(Result::err).collect();
        assert!(failed.is_empty(), "{failed:?}");
        assert_eq!(count(&test.store, sql("SELECT version AS n FROM tenants")).await, 51);
        if let Some(other) = other {
            other.close().await;
        }
    })
    .await;
}

#[tokio::test]
async fn after_commit_happens_after_a_commit_and_never_else() {
    for_each_store(async |test| {
        let rung = Arc::new(AtomicUsize::new(0));
        let ring = || {
            let rung = Arc::clone(&rung);
            move || {
                rung.fetch_add(1, Ordering::SeqCst);
            }
        };
        let mut tx = test.store.begin().await.unwrap();
        tx.after_commit(ring());
        drop(tx);
        let mut tx = test.store.begin().await.unwrap();
        tx.after_commit(ring());
        tx.after_commit(ring());
        assert_eq!(rung.load(Ordering::SeqCst), 0);
        tx.commit().await.unwrap();
        assert_eq!(rung.load(Ordering::SeqCst), 2);
    })
    .await;
}

#[tokio::test]
async fn readers_see_what_is_committed_wait_for_nobody_and_cannot_write() {
    for_each_store(async |test| {
        if test.kind == Kind::SqliteMemory {
            // One connection is the whole database there: a reader takes its turn like a writer.
            assert!(test.store.read().await.is_ok());
            return;
        }
        let mut writing = test.store.begin().await.unwrap();
        writing.execute(contact("a", None, "a@x")).await.unwrap();
        let mut reading = test.store.read().await.unwrap();
        let seen = reading.fetch_all(sql("SELECT id FROM contacts")).await.unwrap();
        assert!(seen.is_empty());
        drop(reading);
        writing.commit().await.unwrap();
        assert_eq!(test.store.query(sql("SELECT id FROM contacts")).await.unwrap().len(), 1);
        if test.kind == Kind::SqliteFile {
            let mut reading = test.store.read().await.unwrap();
            assert!(reading.execute(contact("b", None, "b@x")).await.is_err());
        }
    })
    .await;
}

/// Also in memory, where a connection is the database: one closed because its taker gave up takes everything along.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_given_up_anywhere_leaves_the_next_writer_free() {
    for_each_store(async |test| {
        for n in 0..200_u64 {
            let store = test.store.clone();
            let writing = tokio::spawn(async move {
                let mut tx = store.begin().await.unwrap();
                tx.execute(contact(&format!("c{n}"), None, "x")).await.unwrap();
                tx.batch(vec![contact(&format!("d{n}"), None, "x"), contact(&format!("e{n}"), None, "x")]).await.unwrap();
                tx.commit().await.unwrap();
            });
            for _ in 0..n * 2 {
                tokio::task::yield_now().await;
            }
            writing.abort();
            let _ = writing.await;
        }
        let mut tx = test.store.begin().await.unwrap();
        tx.execute(contact("last", None, "x")).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(contacts(&test.store).await % 3, 1, "a transaction was kept in part");
    })
    .await;
}

/// A BEGIN given up half-way must not swallow what runs next on its connection.
#[tokio::test]
async fn what_is_written_after_turns_were_given_up_is_there_for_everybody() {
    for_each_store(async |test| {
        let other = test.reopened().await;
        let reader = other.as_ref().unwrap_or(&test.store);
        for n in 0..60 {
            let mut turn = Box::pin(test.store.begin());
            for _ in 0..n % 6 {
                if futures::poll!(&mut turn).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            drop(turn);
            test.store.execute(contact(&format!("c{n}"), None, "x")).await.unwrap();
            assert_eq!(contacts(reader).await, n + 1);
        }
        if let Some(other) = other {
            other.close().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_store_whose_connections_were_cut_goes_on() {
    for_each_store(async |test| {
        let mut cut_in_half = test.store.begin().await.unwrap();
        cut_in_half.execute(contact("a", None, "a@x")).await.unwrap();
        if !test.cut().await {
            drop(cut_in_half);
            assert_eq!(contacts(&test.store).await, 0);
            return;
        }
        let lost = cut_in_half.execute(contact("b", None, "b@x")).await;
        assert!(matches!(lost, Err(StoreError::Unavailable(_))), "{lost:?}");
        drop(cut_in_half);
        until("the store answers again", async || test.store.query(sql("SELECT id FROM contacts")).await.is_ok()).await;
        test.store.execute(contact("c", None, "c@x")).await.unwrap();
        assert_eq!(contacts(&test.store).await, 1);
    })
    .await;
}

#[tokio::test]
async fn a_writer_that_waits_too_long_is_told_to_try_again() {
    for_each_store(async |test| {
        let Some(other) = test.reopened_by_the_impatient(Duration::from_millis(50)).await else {
            return assert!(test.store.optimize(true).await.is_ok());
        };
        test.store.execute(seed::tenant(&tenant_id(0), "acme")).await.unwrap();
        let raise = || sql("UPDATE tenants SET version = 2");
        let mut first = test.store.begin().await.unwrap();
        first.execute(raise()).await.unwrap();
        let waited = other.execute(raise()).await;
        assert!(matches!(waited, Err(StoreError::Busy)), "{waited:?}");
        drop(first);
        other.close().await;
    })
    .await;
}
