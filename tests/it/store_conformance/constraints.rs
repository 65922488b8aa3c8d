//! What the schema refuses, whoever asks.

use nameplate::model::id::{IssuerId, OrderId};
use nameplate::model::moment::Moment;
use nameplate::store::{Stmt, Store, StoreError, sql};

use crate::support::seed::{self, bytes, domain_id, tenant_id};
use crate::support::stores::for_each_store;

async fn refused(store: &Store, what: &str, stmt: Stmt) {
    match store.execute(stmt).await {
        Err(StoreError::Conflict { constraint }) => assert!(!constraint.is_empty()),
        other => panic!("{what}: {other:?}, expected a conflict"),
    }
}

async fn close(store: &Store, table: &'static str, n: u16) {
    let stmt = match table {
        "domains" => sql("UPDATE domains SET claim = 'withdrawn' WHERE id = $1").bind(domain_id(n).as_str()),
        _ => {
            sql("UPDATE orders SET state = 'failed' WHERE id = $1").bind(OrderId::mint(Moment::default(), bytes(n)).as_str())
        }
    };
    assert_eq!(store.execute(stmt).await.unwrap(), 1);
}

#[tokio::test]
async fn a_tenant_has_one_open_claim_on_a_name_and_others_have_theirs() {
    for_each_store(async |test| {
        let store = &test.store;
        for n in 0..2 {
            store.execute(seed::tenant(&tenant_id(n), &format!("t{n}"))).await.unwrap();
        }
        let claim =
            |n: u16, tenant: u16| seed::domain(&domain_id(n), &tenant_id(tenant), "support.acme.test", Moment::NEVER);
        store.execute(claim(0, 0)).await.unwrap();
        store.execute(claim(1, 1)).await.unwrap();
        refused(store, "a second open claim", claim(2, 0)).await;
        close(store, "domains", 0).await;
        store.execute(claim(2, 0)).await.unwrap();
        refused(store, "the same id again", claim(2, 0)).await;
    })
    .await;
}

#[tokio::test]
async fn a_name_has_one_holder() {
    for_each_store(async |test| {
        let ids = seed::domains(&test.store, 2, Moment::NEVER).await;
        let hold = |n: usize| {
            sql("INSERT INTO holdings (hostname, domain_id, tenant_id, state, term, since, looks_off) \
                 VALUES ('support.acme.test', $1, $2, 'held', 1, 0, 0)")
            .bind(ids[n].as_str())
            .bind(tenant_id(0).as_str())
        };
        test.store.execute(hold(0)).await.unwrap();
        refused(&test.store, "a second holder", hold(1)).await;
    })
    .await;
}

#[tokio::test]
async fn a_domain_has_one_open_order_of_a_purpose() {
    for_each_store(async |test| {
        let store = &test.store;
        let domain = seed::domains(store, 1, Moment::NEVER).await.remove(0);
        let issuer = IssuerId::mint(Moment::default(), bytes(0));
        store.execute(seed::issuer(&issuer)).await.unwrap();
        let order = |n: u16, purpose| seed::order(&OrderId::mint(Moment::default(), bytes(n)), &domain, &issuer, purpose);
        store.execute(order(0, "first")).await.unwrap();
        store.execute(order(1, "renew")).await.unwrap();
        refused(store, "a second open order", order(2, "first")).await;
        close(store, "orders", 0).await;
        store.execute(order(2, "first")).await.unwrap();

        let grant = |id: &'static str| {
            sql("INSERT INTO grants (id, issuer_id, order_id, granted_at, expires_at, state) VALUES ($1, $2, $3, 0, 0, 'open')")
                .bind(id)
                .bind(issuer.as_str())
                .bind(OrderId::mint(Moment::default(), bytes(2)).as_str())
        };
        store.execute(grant("gra_1")).await.unwrap();
        refused(store, "a second open grant", grant("gra_2")).await;
    })
    .await;
}

#[tokio::test]
async fn a_row_must_have_its_parent_and_a_known_state() {
    for_each_store(async |test| {
        let orphan = seed::domain(&domain_id(0), &tenant_id(0), "support.acme.test", Moment::NEVER);
        assert!(matches!(test.store.execute(orphan).await, Err(StoreError::Refused(_))));
        seed::domains(&test.store, 1, Moment::NEVER).await;
        let odd = test.store.execute(sql("UPDATE domains SET claim = 'pending'")).await;
        assert!(matches!(odd, Err(StoreError::Refused(_))), "{odd:?}");
        assert!(odd.is_err_and(|e| !e.passes_by_itself()), "the next try would be refused too");
    })
    .await;
}
