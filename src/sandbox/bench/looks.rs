//! Looks as fast as they go.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::try_join_all;

use super::report::{LooksReport, Memory, Phase};
use super::zones::{Zones, world};
use crate::dns::world::EditError;
use crate::dns::{Caps, Gate, Look as _, Observers};
use crate::env::Env;
use crate::model::checks;
use crate::model::evidence::Verdict;
use crate::model::look::Depth;
use crate::model::moment::Moment;
use crate::model::traffic::Cap;

/// Targets: looks in a second, and milliseconds at the median.
const ROUTINE: (f64, Option<f64>) = (1_000.0, None);
const FULL: (f64, Option<f64>) = (50.0, Some(50.0));

/// Looks under way at once: as many as the daily rechecks have.
const ROUTINE_AT_ONCE: usize = 16;
/// As many as keep both processors busy.
const FULL_AT_ONCE: usize = 8;

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct LooksSettings {
    /// How long, in all.
    pub time: Duration,
    /// Domains in the world.
    pub domains: usize,
}

/// A run that came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The servers.
    #[error("the servers could not be started on loopback")]
    Servers(#[from] io::Error),
    /// The zones.
    #[error("the zones could not be made")]
    Zones(#[from] EditError),
    /// A look that did not see what is there.
    #[error("a look at {hostname} saw {seen} instead of what is published: these figures would be worth nothing")]
    NotSeen {
        /// Where.
        hostname: String,
        /// What it saw.
        seen: String,
    },
    /// A task of ours.
    #[error("a looking task ended")]
    Task(#[from] tokio::task::JoinError),
}

struct Bench {
    zones: Zones,
    observers: Observers,
    env: Env,
    next: AtomicUsize,
}

/// Half of the time routine looks, half full ones.
pub async fn looks(settings: LooksSettings, env: &Env) -> Result<LooksReport, BenchError> {
    let domains = settings.domains.max(1);
    let zones = Zones::start(&world(domains)?, domains).await?;
    let much = Cap::new(1_000_000, 1_000_000);
    let caps = Caps { looks: much, zone: much, tenant: much, imports: much, packets: much, server: much };
    let gate = Gate::new(caps, env, Arc::default());
    let observers = Observers::new(zones.settings(), env.clone()).behind(gate);
    let bench = Arc::new(Bench { zones, observers, env: env.clone(), next: AtomicUsize::new(0) });
    let mut memory = Watched::new(settings.time);
    // Every domain once, so that what grows with their number has grown.
    bench.phase(Depth::Routine, ROUTINE_AT_ONCE, Until::Looks(domains), &mut memory).await?;
    bench.phase(Depth::Full, FULL_AT_ONCE, Until::Looks(domains), &mut memory).await?;
    let began = env.now();
    memory.begin(began);
    let (took, ran, packets) =
        bench.phase(Depth::Routine, ROUTINE_AT_ONCE, Until::Time(settings.time / 2), &mut memory).await?;
    let routine = Phase::of(took, ran, packets, ROUTINE);
    let (took, ran, packets) = bench.phase(Depth::Full, FULL_AT_ONCE, Until::Time(settings.time / 2), &mut memory).await?;
    let full = Phase::of(took, ran, packets, FULL);
    let seconds = env.now().since(began).as_secs_f64();
    Ok(LooksReport { seconds, domains, optimised: !cfg!(debug_assertions), routine, full, memory: memory.told() })
}

/// When a phase ends.
#[derive(Clone, Copy)]
enum Until {
    Looks(usize),
    Time(Duration),
}

impl Bench {
    async fn phase(
        self: &Arc<Self>,
        depth: Depth,
        at_once: usize,
        until: Until,
        memory: &mut Watched,
    ) -> Result<(Vec<u32>, Duration, u64), BenchError> {
        let (began, packets) = (self.env.now(), self.zones.packets());
        let first = self.next.load(Ordering::Relaxed);
        let tasks = (0..at_once).map(|_| {
            let bench = Arc::clone(self);
            let over = move |n: usize, now: Moment| match until {
                Until::Looks(many) => n - first >= many,
                Until::Time(time) => now.since(began) >= time,
            };
            tokio::spawn(async move { bench.one_after_another(depth, over).await })
        });
        let mut all = Box::pin(try_join_all(tasks.collect::<Vec<_>>()));
        let done = loop {
            tokio::select! {
                done = &mut all => break done?,
                () = self.env.sleep(Duration::from_secs(1)) => memory.look(self.env.now()),
            }
        };
        let ran = self.env.now().since(began);
        let mut took = Vec::new();
        for times in done {
            took.extend(times?);
        }
        memory.look(self.env.now());
        Ok((took, ran, self.zones.packets() - packets))
    }

    /// Microseconds of each look.
    async fn one_after_another(&self, depth: Depth, over: impl Fn(usize, Moment) -> bool) -> Result<Vec<u32>, BenchError> {
        let mut took = Vec::new();
        loop {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            let began = self.env.now();
            if over(n, began) {
                return Ok(took);
            }
            let ask = self.zones.ask(n, depth);
            let seen = self.observers.look(&ask).await;
            let findings = checks::judge(&ask, &seen);
            took.push(u32::try_from(self.env.now().since(began).as_micros()).unwrap_or(u32::MAX));
            if findings.len() != 3 || findings.iter().any(|f| f.verdict() != Verdict::Pass) {
                let codes: Vec<&str> = findings.iter().map(|f| f.reason.code()).collect();
                let why = seen.cut_short.unwrap_or_default();
                return Err(BenchError::NotSeen {
                    hostname: ask.hostname.to_string(),
                    seen: format!("{} {why}", codes.join(", ")),
                });
            }
        }
    }
}

/// Resident memory over a run.
struct Watched {
    begun: Option<Moment>,
    early_after: Duration,
    early: Option<f64>,
    end: Option<f64>,
    most: f64,
}

impl Watched {
    fn new(time: Duration) -> Self {
        Watched { begun: None, early_after: time / 10, early: None, end: None, most: 0.0 }
    }

    fn begin(&mut self, now: Moment) {
        self.begun = Some(now);
    }

    fn look(&mut self, now: Moment) {
        let (Some(begun), Some(mb)) = (self.begun, resident_mb()) else { return };
        if now.since(begun) >= self.early_after {
            self.early.get_or_insert(mb);
        }
        self.most = self.most.max(mb);
        self.end = Some(mb);
    }

    fn told(&self) -> Option<Memory> {
        Some(Memory { early_mb: self.early?, end_mb: self.end?, most_mb: self.most })
    }
}

/// As Linux tells it.
fn resident_mb() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kb: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kb / 1024.0)
}
