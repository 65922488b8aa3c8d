//! The hand-driven alarm clock: alarms are kept in memory and ring when a test pops them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::Alarms;
use crate::model::id::DomainId;
use crate::model::moment::Moment;
use crate::store::{StoreResult, Tx, Wake};

/// What becomes of an alarm when its transaction is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is set.
    Kept,
    /// It is lost, as by a queue whose rows were deleted.
    Lost,
    /// It is set twice, as by two sweeps at once.
    Doubled,
}

#[derive(Default)]
struct State {
    /// Alarms by time, then by order of setting.
    alarms: BTreeMap<(Moment, u64), DomainId>,
    /// Those that ring before all others that are due.
    first: BTreeMap<(Moment, u64), DomainId>,
    count: u64,
    fates: Vec<Fate>,
}

/// An alarm clock driven by a test. Clones share their alarms.
#[derive(Clone, Default)]
pub struct HandQueue(Arc<Mutex<State>>);

impl HandQueue {
    /// A clock without alarms.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fate of the alarms to come, one each, in order; those after them are kept.
    pub fn decide(&self, fates: impl IntoIterator<Item = Fate>) {
        let mut state = self.state();
        state.fates = fates.into_iter().collect();
        state.fates.reverse();
    }

    /// The earliest alarm that is due at `now`, removed.
    pub fn pop(&self, now: Moment) -> Option<DomainId> {
        let mut state = self.state();
        let State { alarms, first, .. } = &mut *state;
        [first, alarms].into_iter().find_map(|set| Some(set.first_entry().filter(|e| e.key().0 <= now)?.remove()))
    }

    /// When the earliest alarm rings.
    pub fn next_at(&self) -> Option<Moment> {
        let state = self.state();
        [&state.first, &state.alarms].into_iter().filter_map(|set| Some(set.keys().next()?.0)).min()
    }

    /// Loses every alarm; how many.
    pub fn clear(&self) -> usize {
        let mut state = self.state();
        std::mem::take(&mut state.alarms).len() + std::mem::take(&mut state.first).len()
    }

    fn set(&self, id: &DomainId, at: Moment, first: bool) {
        let mut state = self.state();
        let times = match state.fates.pop() {
            Some(Fate::Lost) => 0,
            Some(Fate::Doubled) => 2,
            Some(Fate::Kept) | None => 1,
        };
        for _ in 0..times {
            state.count += 1;
            let key = (at, state.count);
            let set = if first { &mut state.first } else { &mut state.alarms };
            set.insert(key, id.clone());
        }
    }
}

#[async_trait]
impl Wake for HandQueue {
    async fn wake(&self, tx: &mut Tx, id: &DomainId, at: Moment) -> StoreResult<()> {
        let (clock, id) = (self.clone(), id.clone());
        tx.after_commit(move || clock.set(&id, at, false));
        Ok(())
    }

    async fn wake_first(&self, tx: &mut Tx, id: &DomainId, at: Moment) -> StoreResult<()> {
        let (clock, id) = (self.clone(), id.clone());
        tx.after_commit(move || clock.set(&id, at, true));
        Ok(())
    }
}

#[async_trait]
impl Alarms for HandQueue {
    async fn waiting(&self) -> StoreResult<u64> {
        let state = self.state();
        Ok((state.alarms.len() + state.first.len()) as u64)
    }

    async fn tidy(&self, _now: Moment) -> StoreResult<u64> {
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{OpenSettings, Store};

    fn id(n: u8) -> DomainId {
        DomainId::mint(Moment::from_secs(1), [n; 10])
    }

    async fn set(store: &Store, clock: &HandQueue, alarms: &[(DomainId, u64)]) {
        let mut tx = store.begin().await.unwrap();
        for (id, at) in alarms {
            clock.wake(&mut tx, id, Moment::from_secs(*at as i64)).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn alarms_ring_in_order_and_only_after_their_commit() {
        let store = Store::open(&OpenSettings { url: "sqlite::memory:".into(), connections: 1 }).await.unwrap();
        let clock = HandQueue::new();
        let mut dropped = store.begin().await.unwrap();
        clock.wake(&mut dropped, &id(9), Moment::from_secs(1)).await.unwrap();
        drop(dropped);
        set(&store, &clock, &[(id(1), 20), (id(2), 10)]).await;
        assert_eq!(clock.waiting().await.unwrap(), 2);
        assert_eq!(clock.pop(Moment::from_secs(9)), None);
        assert_eq!(clock.next_at(), Some(Moment::from_secs(10)));
        assert_eq!(clock.pop(Moment::from_secs(30)), Some(id(2)));
        assert_eq!(clock.pop(Moment::from_secs(30)), Some(id(1)));
        assert_eq!(clock.pop(Moment::from_secs(30)), None);
    }

    #[tokio::test]
    async fn whoever_waits_is_rung_first_but_not_before_its_time() {
        let store = Store::open(&OpenSettings { url: "sqlite::memory:".into(), connections: 1 }).await.unwrap();
        let clock = HandQueue::new();
        set(&store, &clock, &[(id(1), 1)]).await;
        let mut tx = store.begin().await.unwrap();
        clock.wake_first(&mut tx, &id(2), Moment::from_secs(2)).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(clock.waiting().await.unwrap(), 2);
        let at = |secs| Moment::from_secs(secs);
        assert_eq!((clock.next_at(), clock.pop(at(1))), (Some(at(1)), Some(id(1))));
        set(&store, &clock, &[(id(1), 1)]).await;
        assert_eq!((clock.pop(at(2)), clock.pop(at(2)), clock.pop(at(2))), (Some(id(2)), Some(id(1)), None));
    }

    #[tokio::test]
    async fn an_alarm_can_be_lost_or_doubled() {
        let store = Store::open(&OpenSettings { url: "sqlite::memory:".into(), connections: 1 }).await.unwrap();
        let clock = HandQueue::new();
        clock.decide([Fate::Lost, Fate::Doubled]);
        set(&store, &clock, &[(id(1), 1), (id(2), 1), (id(3), 1)]).await;
        let rung: Vec<_> = std::iter::from_fn(|| clock.pop(Moment::from_secs(1))).collect();
        assert_eq!(rung, [id(2), id(2), id(3)]);
        set(&store, &clock, &[(id(1), 1)]).await;
        assert_eq!(clock.clear(), 1);
        assert_eq!(clock.next_at(), None);
    }
}
