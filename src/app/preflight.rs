//! Requests through the public name, as the CA will make them: the preflight before an order, and the look behind a proxy.
//!
//! The question is one that only our edges can answer ([`Preflight`]); the ways are followed here, since only here names can be
//! looked up: at every address of the name, up to ten redirects, each asked at the address it was looked up to.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::sync::Mutex;

use super::addresses::addresses_of;
use super::{App, AppError};
use crate::model::conclude::{self, Conclusion};
use crate::model::domain::Situation;
use crate::model::evidence::{Check, Evidence, Finding, Verdict};
use crate::model::hostname::Hostname;
use crate::model::id::TenantId;
use crate::model::moment::Moment;
use crate::model::outcome::Outcome;
use crate::model::preflight::{self, Control, Hop, Met, Trail};
use crate::model::reason::Reason;
use crate::reach::{Answer, Place, ReachError, Reply, Sent};
use crate::store::{edges, feed};
use crate::telemetry::Chain;
use crate::vault::distribution::{DistributionKey, Preflight};
use crate::vault::{Context, Sealed};

/// Where a CA asks (RFC 8555 §8.3).
const PATH: &str = "/.well-known/acme-challenge/";
/// Redirects that Let's Encrypt follows.
const REDIRECTS: usize = 10;
/// Addresses of one name that are asked; those of IPv6 first, as a CA does.
const ADDRESSES: usize = 8;
/// Names that one preflight looks up on its ways.
const NAMES: usize = 8;
/// How long the ways from one name may take together: a little more than one request that is not answered.
const WHOLE: Duration = Duration::from_secs(12);
/// For how long an outage of our own is believed without asking again: names that wait must not queue up to find it out.
const BELIEVED: Duration = Duration::from_secs(30);
/// Bytes of a page that are shown.
const SAID: usize = 200;

/// A look behind a proxy that took longer than this was slow. A proxy whose origin hangs keeps a step for as long as it likes, up to
/// [`WHOLE`], and workers are few.
const SLOW: Duration = Duration::from_secs(5);
/// For how long it is remembered of a tenant that one of its names was slow...
const REMEMBERED: Duration = Duration::from_secs(3_600);
/// ...while which it has so many of them at once, and all such tenants together so many.
const WHILE_SLOW: (usize, usize) = (2, 6);

/// What is known of the requests under way, and of our own name.
#[derive(Default)]
pub struct Flights {
    /// When our own name did not answer, if it was so last.
    outage: Mutex<Option<Moment>>,
    behind_proxies: std::sync::Mutex<HashMap<TenantId, Behind>>,
}

/// A tenant's looks behind proxies.
#[derive(Default)]
struct Behind {
    under_way: usize,
    slow_at: Option<Moment>,
}

impl Behind {
    fn is_slow(&self, now: Moment) -> bool {
        self.slow_at.is_some_and(|at| now.since(at) < REMEMBERED)
    }
}

impl Flights {
    async fn outage_is_known(&self, now: Moment) -> bool {
        self.outage.lock().await.is_some_and(|at| now.since(at) < BELIEVED)
    }

    async fn learn(&self, answers: bool, now: Moment) {
        *self.outage.lock().await = (!answers).then_some(now);
    }

    fn behind(&self) -> std::sync::MutexGuard<'_, HashMap<TenantId, Behind>> {
        self.behind_proxies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat for a look behind a proxy; none where enough of this tenant's, which were slow before, are under way.
    fn seat(&self, tenant: &TenantId, now: Moment) -> Option<Seat<'_>> {
        let mut all = self.behind();
        all.retain(|_, b| b.under_way > 0 || b.is_slow(now));
        let slow: usize = all.values().filter(|b| b.is_slow(now)).map(|b| b.under_way).sum();
        let own = all.entry(tenant.clone()).or_default();
        if own.is_slow(now) && (own.under_way >= WHILE_SLOW.0 || slow >= WHILE_SLOW.1) {
            return None;
        }
        own.under_way += 1;
        Some(Seat { flights: self, tenant: tenant.clone(), began: now, ended: now })
    }
}

/// Given back when dropped.
struct Seat<'a> {
    flights: &'a Flights,
    tenant: TenantId,
    began: Moment,
    ended: Moment,
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.flights.behind().get_mut(&self.tenant) {
            own.under_way = own.under_way.saturating_sub(1);
            if self.ended.since(self.began) > SLOW {
                own.slow_at = Some(self.ended);
            }
        }
    }
}

/// The preflight of the domain's order.
pub(super) async fn observe(app: &App, s: &mut Situation) -> Result<Conclusion, AppError> {
    let Some(order) = s.order.clone() else { return Ok(Outcome::of(s, app.env.now()).into()) };
    let finding = if app.settings.preflight { fly(app, s).await? } else { preflight::switched_off(&s.domain.hostname) };
    Ok(conclude::preflight(s, &order, &finding, app.env.now()).into())
}

/// Looks behind the proxy that DNS shows, where the ownership record is in place: a request that comes back from our edge
/// says what DNS cannot. A step takes a seat for it and leaves what was known where none is free; the daily looks, which have a pace
/// of their own, need none.
pub(super) async fn behind_proxy(app: &App, s: &Situation, in_step: bool, findings: &mut [Finding]) -> Result<(), AppError> {
    let owned = findings.iter().any(|f| f.check == Check::Ownership && f.verdict() == Verdict::Pass);
    let proxied = findings.iter_mut().find(|f| f.check == Check::Routing && f.reason == Reason::ProxiedByCdn);
    let (Some(routing), true) = (proxied, owned) else { return Ok(()) };
    let before = s.domain.evidence_of(Check::Routing).map(|e: &Evidence| e.finding.reason);
    let met = if s.counted_edges < s.min_edges {
        preflight::not_asked(&s.domain.hostname, "no edge of ours is at work, so nothing could be tried")
    } else if !in_step {
        fly(app, s).await?
    } else if let Some(mut seat) = app.flights.seat(&s.domain.tenant_id, app.env.now()) {
        let met = fly(app, s).await;
        seat.ended = app.env.now();
        met?
    } else {
        let why =
            "other names whose proxies answer slowly are being tried just now, so this one was not; it is at the next look";
        preflight::not_asked(&s.domain.hostname, why)
    };
    *routing = preflight::behind_proxy(routing.clone(), &met, before);
    Ok(())
}

/// One preflight: the name and, where something is wrong, our own name for comparison.
async fn fly(app: &App, s: &Situation) -> Result<Finding, AppError> {
    let host = &s.domain.hostname;
    if app.flights.outage_is_known(app.env.now()).await {
        return Ok(preflight::not_asked(host, "our own name did not answer a moment ago, so nothing was tried"));
    }
    let Some(key) = key(app).await? else {
        return Ok(preflight::not_asked(host, "the feed has no distribution key yet, so no edge could answer"));
    };
    let trails = ways(app, &key, host).await;
    let well = !trails.is_empty() && trails.iter().all(|t| matches!(t.met, Met::Edge | Met::NoRoute));
    let control = if well || trails.is_empty() {
        None
    } else {
        let own = Hostname::trusted(&s.domain.target);
        let control = Control { trails: ways(app, &key, &own).await, name: own.to_string() };
        app.flights.learn(control.answers(), app.env.now()).await;
        Some(control)
    };
    let mut ours = app.settings.platform.addresses.clone();
    if let (Some(_), Some(target)) = (&control, app.settings.apex_target.as_ref().filter(|_| host.is_apex())) {
        ours.extend(addresses_of(app, target).await);
    }
    Ok(preflight::judge(host, &trails, control.as_ref(), &ours))
}

/// What edges answer by: the distribution key in use.
async fn key(app: &App) -> Result<Option<Preflight>, AppError> {
    let mut tx = app.store.read().await?;
    let epoch = feed::position(&mut tx).await?.epoch;
    let rows = edges::distribution_keys(&mut tx, epoch).await?;
    let Some(row) = rows.into_iter().find(|row| row.retired_at.is_none()) else { return Ok(None) };
    let secret = app.vault.open(&Context::new("distribution-key", &row.id), &Sealed::try_from(row.sealed_key)?)?;
    Ok(Some(Preflight::of(&DistributionKey::from_secret(&secret)?)))
}

async fn ways(app: &App, key: &Preflight, host: &Hostname) -> Vec<Trail> {
    let question = key.ask(&app.env);
    trails(app, host, &question.token, &question.answer).await
}

/// The ways from every address of `host` to wherever a request for `token` ends; [`Met::Edge`] is `answer`.
pub(super) async fn trails(app: &App, host: &Hostname, token: &str, answer: &str) -> Vec<Trail> {
    let map = Map { app, answer, names: Mutex::default() };
    let addresses = map.addresses(host).await.unwrap_or_default();
    let place = Place { tls: false, host: host.clone(), path: format!("{PATH}{token}") };
    let ways = async {
        let answers = app.reach.ask(&place, &addresses).await;
        futures::future::join_all(answers.into_iter().map(|answer| map.follow(&place, answer))).await
    };
    tokio::select! {
        biased;
        ways = ways => ways,
        () = app.env.sleep(WHOLE) => {
            let silent = |address: &IpAddr| Trail { address: *address, hops: Vec::new(), met: Met::Silent(WHOLE.as_secs()) };
            addresses.iter().map(silent).collect()
        }
    }
}

/// What one preflight has looked up, and what it is looking for.
struct Map<'a> {
    app: &'a App,
    answer: &'a str,
    names: Mutex<HashMap<Hostname, Vec<IpAddr>>>,
}

impl Map<'_> {
    /// The addresses of a name, looked up once; none beyond so many names.
    async fn addresses(&self, host: &Hostname) -> Option<Vec<IpAddr>> {
        let mut names = self.names.lock().await;
        if let Some(known) = names.get(host) {
            return Some(known.clone());
        }
        if names.len() >= NAMES {
            return None;
        }
        let mut all = addresses_of(self.app, host).await;
        all.sort_by_key(|address| (address.is_ipv4(), *address));
        all.truncate(ADDRESSES);
        names.insert(host.clone(), all.clone());
        Some(all)
    }

    /// Goes on from what the first request met.
    async fn follow(&self, from: &Place, first: Answer<Reply>) -> Trail {
        let address = first.address;
        let (mut outcome, mut hops) = (first.outcome, Vec::<Hop>::new());
        let met = loop {
            let reply = match outcome {
                Ok(reply) => reply,
                Err(error) => break met(&error),
            };
            if let Some(hop) = hops.last_mut() {
                hop.shown.clone_from(&reply.shown);
            }
            let to = match reply.sent {
                None => break self.end(&reply),
                Some(Sent::Astray { location, why }) => break Met::Astray { location, why: why.to_owned() },
                Some(Sent::To(_)) if hops.len() >= REDIRECTS => break Met::TooFar,
                Some(Sent::To(place)) => place,
            };
            hops.push(Hop { to: shortened(&to), shown: None });
            // A redirect of the name to itself is asked where it came from, so that each address answers for itself.
            let next = if to.host == from.host { Some(vec![address]) } else { self.addresses(&to.host).await };
            match next {
                None => break Met::TooFar,
                Some(next) => match self.ask(&to, &next).await {
                    None => break Met::Nowhere,
                    Some(answered) => outcome = answered,
                },
            }
        };
        Trail { address, hops, met }
    }

    /// Asks the first address, and the first of IPv4 where no connection to one of IPv6 can be made.
    async fn ask(&self, place: &Place, addresses: &[IpAddr]) -> Option<Result<Reply, ReachError>> {
        let first = addresses.first()?;
        let answered = self.app.reach.ask(place, &[*first]).await.pop()?.outcome;
        let other = addresses.iter().find(|address| first.is_ipv6() && address.is_ipv4());
        match (&answered, other) {
            (Err(ReachError::Connect(_) | ReachError::TimedOut(_)), Some(other)) => {
                Some(self.app.reach.ask(place, &[*other]).await.pop()?.outcome)
            }
            _ => Some(answered),
        }
    }

    fn end(&self, reply: &Reply) -> Met {
        let said = String::from_utf8_lossy(&reply.body);
        if reply.status == 200 && said.trim_end() == self.answer {
            return Met::Edge;
        }
        Met::Answer { status: reply.status, server: reply.server.clone(), said: readable(&said) }
    }
}

/// A place without the token, which says nothing to a reader.
fn shortened(place: &Place) -> String {
    match place.to_string().split_once(PATH) {
        Some((front, _)) => format!("{front}{PATH}…"),
        None => place.to_string().chars().take(SAID).collect(),
    }
}

/// A stranger's page as one line: without its markup, and no longer than shows what it is.
fn readable(body: &str) -> String {
    let mut inside = false;
    let text: String = body
        .chars()
        .filter_map(|c| match c {
            '<' => {
                inside = true;
                Some(' ')
            }
            '>' if inside => {
                inside = false;
                None
            }
            _ if inside => None,
            c if c.is_control() || c.is_whitespace() || c == char::REPLACEMENT_CHARACTER => Some(' '),
            c => Some(c),
        })
        .collect();
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(SAID).collect()
}

fn met(error: &ReachError) -> Met {
    match error {
        ReachError::Refused(refusal) => Met::NotPublic(refusal.to_string()),
        ReachError::Connect(io) => match io.kind() {
            ErrorKind::NetworkUnreachable | ErrorKind::AddrNotAvailable => Met::NoRoute,
            ErrorKind::ConnectionRefused => Met::Refused,
            _ => Met::NoConnection(io.to_string()),
        },
        ReachError::TimedOut(within) => Met::Silent(within.as_secs().max(1)),
        ReachError::Tls(_) | ReachError::Setup(_) | ReachError::Certificate => Met::NoTls(Chain(error).to_string()),
        ReachError::Http(_) | ReachError::Request(_) => Met::NotHttp(Chain(error).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_whose_proxies_were_slow_have_few_seats_and_all_others_as_many_as_they_like() {
        let flights = Flights::default();
        let tenant = |n| TenantId::mint(Moment::from_secs(1), [n; 10]);
        let now = Moment::from_secs(1_000);
        let quick: Vec<Option<Seat<'_>>> = (0..20).map(|_| flights.seat(&tenant(1), now)).collect();
        assert!(quick.iter().all(Option::is_some), "who was never slow waits for nobody");
        drop(quick);
        for n in 1..=4 {
            flights.seat(&tenant(n), now).unwrap().ended = now + SLOW + Duration::from_secs(1);
        }
        let later = now + Duration::from_secs(60);
        let taken: Vec<Option<Seat<'_>>> = (1..=4).flat_map(|n| [n; 3]).map(|n| flights.seat(&tenant(n), later)).collect();
        let seats: Vec<bool> = taken.iter().map(Option::is_some).collect();
        let (two, none) = ([true, true, false], [false; 3]);
        assert_eq!(seats, [two, two, two, none].concat(), "two each, six together");
        assert!(flights.seat(&tenant(5), later).is_some());
        drop(taken);
        let much_later = later + REMEMBERED;
        assert!((0..5).map(|_| flights.seat(&tenant(1), much_later)).collect::<Vec<_>>().iter().all(Option::is_some));
        assert_eq!(flights.behind().len(), 1, "nothing is remembered of those who went");
    }

    #[test]
    fn a_strangers_page_is_read_as_one_short_line_without_markup() {
        assert_eq!(readable("<html><h1>404 Not\n Found</h1>\r\n<hr>nginx</html>"), "404 Not Found nginx");
        assert_eq!(readable("a < b <script>alert(1)</script>"), "a alert(1)");
        assert_eq!(readable("\u{0}\u{1b}[31mred\u{fffd}"), "[31mred");
        assert_eq!(readable(&"x".repeat(5_000)).len(), SAID);
    }
}
