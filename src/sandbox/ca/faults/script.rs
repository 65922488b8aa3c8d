//! The list of what is to go wrong, asked at every request.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;
use tokio::sync::Notify;

use super::place::When;
use super::what::{Fault, What};
use crate::model::moment::Moment;
use crate::sandbox::ca::entry::Endpoint;

/// So many of what happened are kept.
const KEPT: usize = 1000;

/// What is to go wrong. Cheap to clone; clones are the same script.
#[derive(Clone)]
pub struct Script(Arc<Shared>);

struct Shared {
    book: Mutex<Book>,
    holding: Notify,
}

struct Book {
    rng: StdRng,
    entries: Vec<Entry>,
    next_no: u64,
    asked: BTreeMap<Endpoint, u64>,
    happened: VecDeque<Happened>,
    holds: u64,
}

/// A fault in the list.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Its number, by which it is taken out.
    pub no: u64,
    /// The fault.
    pub fault: Fault,
    /// How many requests came to its place since it was put there.
    pub seen: u32,
    /// How often it happened.
    pub happened: u32,
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Happened {
    /// When, by the CA's clock.
    pub at: Moment,
    /// At which request.
    pub endpoint: Endpoint,
    /// What.
    pub what: What,
}

impl Script {
    /// An empty list; chance comes from `seed`.
    pub fn seeded(seed: [u8; 32]) -> Self {
        let book = Book {
            rng: StdRng::from_seed(seed),
            entries: Vec::new(),
            next_no: 1,
            asked: BTreeMap::new(),
            happened: VecDeque::new(),
            holds: 0,
        };
        Script(Arc::new(Shared { book: Mutex::new(book), holding: Notify::new() }))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a fault at the end of the list; its number.
    pub fn add(&self, fault: Fault) -> u64 {
        let mut book = self.book();
        let no = book.next_no;
        book.next_no += 1;
        book.entries.push(Entry { no, fault, seen: 0, happened: 0 });
        no
    }

    /// Takes a fault out; whether it was there.
    pub fn remove(&self, no: u64) -> bool {
        let mut book = self.book();
        let before = book.entries.len();
        book.entries.retain(|e| e.no != no);
        book.entries.len() < before
    }

    /// The CA behaves from now on.
    pub fn clear(&self) {
        self.book().entries.clear();
    }

    /// What is still to happen.
    pub fn entries(&self) -> Vec<Entry> {
        self.book().entries.clone()
    }

    /// What went wrong so far, oldest first.
    pub fn happened(&self) -> Vec<Happened> {
        self.book().happened.iter().cloned().collect()
    }

    /// How many requests came to a resource.
    pub fn asked(&self, endpoint: Endpoint) -> u64 {
        self.book().asked.get(&endpoint).copied().unwrap_or_default()
    }

    /// How many requests were held so far: frozen, or slow.
    pub fn holds(&self) -> u64 {
        self.book().holds
    }

    /// Returns once more than `so_far` requests were held: for whoever drives the clock by hand.
    pub async fn holding(&self, so_far: u64) {
        loop {
            let mut begun = std::pin::pin!(self.0.holding.notified());
            begun.as_mut().enable();
            if self.holds() > so_far {
                return;
            }
            begun.await;
        }
    }

    pub(in crate::sandbox::ca) fn hold(&self) {
        self.book().holds += 1;
        self.0.holding.notify_waiters();
    }

    /// What goes wrong with this request: the first of the list whose turn it is.
    pub(in crate::sandbox::ca) fn next(&self, endpoint: Endpoint, now: Moment) -> Option<What> {
        let mut book = self.book();
        let book = &mut *book;
        *book.asked.entry(endpoint).or_default() += 1;
        let mut struck = None;
        for entry in book.entries.iter_mut().filter(|e| e.fault.at.covers(endpoint)) {
            entry.seen = entry.seen.saturating_add(1);
            let strikes = match entry.fault.when {
                When::Next(times) => entry.happened < times,
                When::Nth(which) => entry.seen >= which,
                When::Always => true,
                When::Chance(percent) => book.rng.next_u32() % 100 < u32::from(percent),
            };
            // One request suffers one fault; whose turn it would have been has it at the next.
            if strikes && struck.is_none() {
                entry.happened = entry.happened.saturating_add(1);
                struck = Some(entry.fault.what.clone());
            }
        }
        book.entries.retain(|e| !e.is_over());
        let what = struck?;
        if book.happened.len() == KEPT {
            book.happened.pop_front();
        }
        book.happened.push_back(Happened { at: now, endpoint, what: what.clone() });
        Some(what)
    }
}

impl Entry {
    fn is_over(&self) -> bool {
        match self.fault.when {
            When::Next(times) => self.happened >= times,
            When::Nth(_) => self.happened > 0,
            When::Always | When::Chance(_) => false,
        }
    }
}
