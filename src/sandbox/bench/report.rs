//! What a run measured, and whether it is what was promised.

use std::time::Duration;

use serde::Serialize;

/// Looks of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// How many were made.
    pub looks: u64,
    /// In one second.
    pub per_second: f64,
    /// At least so many were promised.
    pub target_per_second: f64,
    /// From a look's beginning to its judgement: half of them took no longer.
    pub p50_ms: f64,
    /// At most so long was promised, where it was.
    pub target_p50_ms: Option<f64>,
    /// All but one of a hundred took no longer.
    pub p99_ms: f64,
    /// Packets sent for one look.
    pub packets_per_look: f64,
}

/// Resident memory of the process, in megabytes; servers and zones are in it.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    /// A tenth into the run.
    pub early_mb: f64,
    /// At its end.
    pub end_mb: f64,
    /// At most.
    pub most_mb: f64,
}

/// The whole run.
#[derive(Clone, Debug, Serialize)]
pub struct LooksReport {
    /// How long both kinds ran together.
    pub seconds: f64,
    /// Domains in the world.
    pub domains: usize,
    /// Whether this is an optimised build.
    pub optimised: bool,
    /// One resolver.
    pub routine: Phase,
    /// Three resolvers and the zones' own servers.
    pub full: Phase,
    /// Where the system tells it.
    pub memory: Option<Memory>,
}

/// Growth that allocator and kernel cause by themselves.
const FLAT_SHARE: f64 = 1.10;
const FLAT_MB: f64 = 8.0;

impl Phase {
    pub(super) fn of(mut took: Vec<u32>, ran: Duration, packets: u64, targets: (f64, Option<f64>)) -> Self {
        took.sort_unstable();
        let at = |share: f64| {
            let index = ((took.len() as f64 * share) as usize).min(took.len().saturating_sub(1));
            took.get(index).map_or(0.0, |micros| f64::from(*micros) / 1_000.0)
        };
        let looks = took.len() as f64;
        Phase {
            looks: took.len() as u64,
            per_second: looks / ran.as_secs_f64().max(0.001),
            target_per_second: targets.0,
            p50_ms: at(0.50),
            target_p50_ms: targets.1,
            p99_ms: at(0.99),
            packets_per_look: packets as f64 / looks.max(1.0),
        }
    }

    fn missed(&self, kind: &str) -> Vec<String> {
        let mut all = Vec::new();
        if self.per_second < self.target_per_second {
            all.push(format!("{kind}: {:.0} a second instead of {:.0}", self.per_second, self.target_per_second));
        }
        if let Some(target) = self.target_p50_ms.filter(|t| self.p50_ms > *t) {
            all.push(format!("{kind}: p50 {:.1} ms instead of {target:.0}", self.p50_ms));
        }
        all
    }
}

impl Memory {
    fn flat(&self) -> bool {
        self.end_mb <= self.early_mb * FLAT_SHARE + FLAT_MB
    }
}

impl LooksReport {
    /// What is not as promised.
    pub fn missed(&self) -> Vec<String> {
        let mut all = self.routine.missed("routine looks");
        all.extend(self.full.missed("full looks"));
        if let Some(m) = self.memory.as_ref().filter(|m| !m.flat()) {
            all.push(format!("memory: from {:.1} to {:.1} MB, which is not flat", m.early_mb, m.end_mb));
        }
        all
    }

    /// The lines for people.
    pub fn lines(&self) -> Vec<String> {
        let phase = |kind: &str, p: &Phase| {
            let promised = p.target_p50_ms.map_or(String::new(), |ms| format!(", p50 under {ms:.0} ms"));
            format!(
                "{kind}: {:.0} a second (target {:.0}{promised}), p50 {:.1} ms, p99 {:.1} ms, {:.1} packets a look, {} looks",
                p.per_second, p.target_per_second, p.p50_ms, p.p99_ms, p.packets_per_look, p.looks
            )
        };
        let mut lines = vec![
            phase("routine looks, one resolver", &self.routine),
            phase("full looks, three resolvers and the zones' servers", &self.full),
        ];
        lines.extend(self.memory.as_ref().map(|m| {
            format!(
                "memory, servers included: {:.1} MB early, {:.1} MB at the end, {:.1} MB at most",
                m.early_mb, m.end_mb, m.most_mb
            )
        }));
        lines.push(format!(
            "{} domains, {:.0} s{}",
            self.domains,
            self.seconds,
            match self.optimised {
                true => "",
                false => "; a debug build: these figures say little",
            }
        ));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(per_second: f64, p50_ms: f64) -> Phase {
        Phase { target_p50_ms: Some(50.0), p50_ms, per_second, ..Phase::of(Vec::new(), Duration::ZERO, 0, (50.0, None)) }
    }

    #[test]
    fn what_is_missed_is_named() {
        let memory = |early_mb, end_mb| Some(Memory { early_mb, end_mb, most_mb: end_mb });
        let report = |routine, memory| LooksReport {
            seconds: 1.0,
            domains: 1,
            optimised: true,
            routine,
            full: phase(51.0, 49.0),
            memory,
        };
        assert!(report(phase(50.0, 50.0), memory(40.0, 51.0)).missed().is_empty());
        let missed = report(phase(49.0, 51.0), memory(40.0, 53.0)).missed();
        assert_eq!(missed.len(), 3, "{missed:?}");
        assert!(missed[0].contains("49 a second instead of 50") && missed[1].contains("p50 51.0 ms instead of 50"));
    }

    #[test]
    fn figures_of_a_phase() {
        let p = Phase::of((1..=1_000).map(|n| n * 1_000).collect(), Duration::from_secs(2), 11_000, (1.0, None));
        assert_eq!((p.looks, p.per_second, p.p50_ms, p.p99_ms, p.packets_per_look), (1_000, 500.0, 501.0, 991.0, 11.0));
    }
}
