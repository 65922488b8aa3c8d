//! How fast one caller may ask: by token, and by address for those that show no valid one, to the API or to sign in.
//!
//! The arithmetic is the ledger's (GCRA). What is remembered is one moment a caller, of a bounded number of callers; a caller
//! that is forgotten begins with all it may have. A valid token is always looked at: neighbours behind one address cannot
//! shut each other out, and nobody guesses 256 random bits.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use super::once::Flights;
use super::problem::Problem;
use crate::config::ApiConfig;
use crate::model::id::TokenId;
use crate::model::ledger::{Bucket, Limit, settle};
use crate::model::moment::Moment;

/// So many callers are remembered of each kind.
const REMEMBERED: usize = 20_000;
/// The time over which the numbers of the configuration hold.
const WINDOW_SECS: u64 = 60;

/// What one kind of caller has used up.
struct Book {
    name: &'static str,
    limit: Limit,
    used: Mutex<HashMap<String, Moment>>,
}

/// How a caller stands after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    name: &'static str,
    limit: Limit,
    allowed: bool,
    remaining: u32,
    /// When all is there again.
    full_in: Duration,
    /// When the next request is taken.
    next_in: Duration,
}

impl Book {
    fn new(name: &'static str, per_minute: u32) -> Self {
        Book { name, limit: Limit { burst: per_minute.max(1), per_secs: WINDOW_SECS }, used: Mutex::default() }
    }

    /// Takes one from what the caller has left.
    fn take(&self, who: &str, now: Moment) -> Standing {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if !used.contains_key(who) && used.len() >= REMEMBERED {
            forget(&mut used, now);
        }
        let tat = used.get(who).copied().unwrap_or(now);
        let allowed = Bucket { tat, ..Bucket::default() }.earliest(self.limit, now) <= now;
        let tat = if allowed { settle(tat, now, self.limit) } else { tat };
        used.insert(who.to_owned(), tat);
        let after = Bucket { tat, ..Bucket::default() };
        Standing {
            name: self.name,
            limit: self.limit,
            allowed,
            remaining: after.available(self.limit, now),
            full_in: tat.since(now),
            next_in: after.earliest(self.limit, now).since(now),
        }
    }
}

/// Forgets whoever has all again, and if that is nobody, the half that has used least.
fn forget(used: &mut HashMap<String, Moment>, now: Moment) {
    used.retain(|_, tat| *tat > now);
    if used.len() < REMEMBERED {
        return;
    }
    let mut tats: Vec<Moment> = used.values().copied().collect();
    tats.sort_unstable();
    let middle = tats.get(tats.len() / 2).copied().unwrap_or(now);
    used.retain(|_, tat| *tat > middle);
}

impl Standing {
    fn write(self, headers: &mut HeaderMap) {
        let policy = format!("\"{}\";q={};w={}", self.name, self.limit.burst, self.limit.per_secs);
        let now = format!("\"{}\";r={};t={}", self.name, self.remaining, whole(self.full_in));
        for (name, value) in [("ratelimit-policy", policy), ("ratelimit", now)] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
    }
}

/// Whole seconds, rounded up: who waits so long waits long enough.
fn whole(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// All callers of one process.
pub(super) struct Pace {
    tokens: Book,
    addresses: Book,
    /// What is under way under a key.
    pub flights: Flights,
}

impl Pace {
    pub(super) fn new(config: ApiConfig) -> Self {
        Pace {
            tokens: Book::new("token", config.requests_per_minute),
            addresses: Book::new("failures", config.failures_per_minute),
            flights: Flights::default(),
        }
    }
}

/// The place at which one request is counted.
#[derive(Clone)]
pub(super) struct Gate {
    pub(super) pace: Arc<Pace>,
    standing: Arc<Mutex<Option<Standing>>>,
}

impl Gate {
    fn settle(&self, standing: Standing) -> Result<(), Problem> {
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = Some(standing);
        if standing.allowed {
            return Ok(());
        }
        let wait = Duration::from_secs(whole(standing.next_in).max(1));
        let detail = format!(
            "This caller makes more than {} requests in {} s. Wait {} s and go on more slowly.",
            standing.limit.burst,
            standing.limit.per_secs,
            wait.as_secs()
        );
        Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", "Too many requests", detail).after(wait))
    }

    /// Counts a request by a valid token.
    pub(super) fn by_token(&self, token: &TokenId, now: Moment) -> Result<(), Problem> {
        self.settle(self.pace.tokens.take(token.as_str(), now))
    }

    /// Counts one without.
    pub(super) fn by_nobody(&self, from: Option<IpAddr>, now: Moment) -> Result<(), Problem> {
        self.settle(self.pace.addresses.take(&network_of(from), now))
    }
}

/// Who has one address of IPv6 has the 2^64 beside it.
fn network_of(address: Option<IpAddr>) -> String {
    match address.map(|address| address.to_canonical()) {
        None => "-".to_owned(),
        Some(IpAddr::V4(address)) => address.to_string(),
        Some(IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

/// Puts the gate before the handlers and what it saw into the headers.
pub(super) async fn keep(State(pace): State<Arc<Pace>>, mut request: Request, next: Next) -> Response {
    let gate = Gate { pace, standing: Arc::default() };
    let standing = Arc::clone(&gate.standing);
    request.extensions_mut().insert(gate);
    let mut response = next.run(request).await;
    let seen = *standing.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(standing) = seen {
        standing.write(response.headers_mut());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_secs(1_800_000_000);

    #[test]
    fn a_caller_has_its_burst_and_then_one_an_interval() {
        let book = Book::new("token", 60);
        let last = (0..60).map(|_| book.take("a", NOW)).last().unwrap();
        assert_eq!((last.allowed, last.remaining, last.next_in), (true, 0, Duration::from_secs(1)));
        assert!(!book.take("a", NOW).allowed);
        assert!(book.take("b", NOW).allowed, "another caller");
        let later = NOW + Duration::from_secs(2);
        assert!(book.take("a", later).allowed && book.take("a", later).allowed && !book.take("a", later).allowed);
        let mut headers = HeaderMap::new();
        book.take("c", NOW).write(&mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"token\";q=60;w=60");
        assert_eq!(headers["ratelimit"], "\"token\";r=59;t=1");
    }

    #[test]
    fn memory_is_bounded_and_the_busiest_are_remembered() {
        let book = Book::new("token", 3);
        for _ in 0..3 {
            book.take("busy", NOW);
        }
        for n in 0..REMEMBERED * 2 {
            book.take(&n.to_string(), NOW);
        }
        assert!(book.used.lock().unwrap().len() <= REMEMBERED);
        assert!(!book.take("busy", NOW).allowed);
        book.take("late", NOW + Duration::from_secs(3600));
        for n in 0..REMEMBERED {
            book.take(&n.to_string(), NOW + Duration::from_secs(3600));
        }
        assert!(book.used.lock().unwrap().len() <= REMEMBERED);
    }

    #[test]
    fn neighbours_in_one_ipv6_network_are_one_caller() {
        let of = |text: &str| network_of(Some(text.parse().unwrap()));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
