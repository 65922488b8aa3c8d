//! A domain that somebody else moves under every step of a worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use nameplate::app::{Boundary, advance};
use nameplate::model::id::DomainId;
use nameplate::store::{Store, situation, sql};

use crate::support::rig::Rig;

/// Moves the domain just before a step would be recorded.
struct Mover {
    store: Store,
    id: DomainId,
    moved: AtomicUsize,
}

#[async_trait]
impl Boundary for Mover {
    async fn cross(&self, place: &'static str) {
        if place == "before recording" {
            let mut tx = self.store.begin().await.unwrap();
            situation::fence(&mut tx, &self.id).await.unwrap();
            tx.commit().await.unwrap();
            self.moved.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[tokio::test]
async fn a_domain_that_others_move_is_tried_after_growing_pauses_and_then_left_to_the_sweep() {
    let rig = Rig::new(914).await;
    let tenant = rig.tenant("acme").await;
    let id = rig.claim(&tenant, "shop.acme.test").await;
    let mover = Arc::new(Mover { store: rig.app.store.clone(), id: id.clone(), moved: AtomicUsize::new(0) });
    let mut app = rig.new_worker();
    app.boundary = mover.clone();
    let driven = tokio::spawn({
        let id = id.clone();
        async move { advance::drive(&app, &id).await }
    });
    let mut pauses = Vec::new();
    while !driven.is_finished() {
        let short = |wait: &Duration| !wait.is_zero() && *wait <= Duration::from_secs(1);
        match rig.hand.next_wake().map(|at| at.since(rig.env.now())).filter(short) {
            Some(wait) => {
                pauses.push(wait);
                rig.hand.advance(wait);
            }
            None => tokio::task::yield_now().await,
        }
    }
    driven.await.unwrap().unwrap();
    let tries = mover.moved.load(Ordering::SeqCst);
    assert!((3..=10).contains(&tries), "{tries} tries");
    assert_eq!(pauses.len(), tries - 1, "{pauses:?}");
    assert!(pauses.windows(2).all(|two| two[0] < two[1]), "{pauses:?}");
    let due = sql("SELECT count(*) AS n FROM domains WHERE due_at <= $1 AND lease_until <= $1").bind(rig.env.now());
    assert_eq!(rig.count(due).await, 1, "the sweep finds it");
    // Left alone, it goes on.
    advance::drive(&rig.new_worker(), &id).await.unwrap();
    assert!(rig.domain_text(&id, "evidence").await.unwrap().contains("ownership"));
}
