//! `nameplate sandbox --check`: the whole walk by itself, a line a step; with `--repeat`, how long it takes.

use std::io::{self, Write};

use serde::Serialize;

use super::outside::TENANT_ZONE;
use super::walk::{self, Failed, Walk};
use super::world::{World, WorldError, WorldSettings};
use crate::env::Env;
use crate::model::moment::Moment;
use crate::roles::StartError;

/// What is walked.
#[derive(Clone, Debug, Default)]
pub struct CheckSettings {
    /// Records that stand in the tenant's zone before anything else.
    pub records: Vec<String>,
    /// Walk so many domains more and measure them.
    pub repeat: Option<usize>,
    /// Print the measurement as JSON.
    pub json: bool,
}

/// The walk was not made to its end.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// There was no sandbox to walk in.
    #[error("the sandbox did not start")]
    World(#[from] WorldError),
    /// A step failed.
    #[error("the walk failed at: {0}")]
    Step(#[from] Failed),
    /// It did not end cleanly.
    #[error("the sandbox did not stop cleanly")]
    Drain(#[from] StartError),
    /// Nobody reads.
    #[error("the report could not be written")]
    Report(#[from] io::Error),
}

/// How long it took from TXT and "check now" to the first page, in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Measured {
    /// How many domains.
    pub domains: usize,
    /// Half of them were faster.
    pub p50_ms: u64,
    /// Nine of ten were.
    pub p90_ms: u64,
    /// The slowest.
    pub max_ms: u64,
}

impl Measured {
    fn of(mut times: Vec<u64>) -> Measured {
        times.sort_unstable();
        let rank = |share: usize| times.get((times.len() * share).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0);
        Measured { domains: times.len(), p50_ms: rank(50), p90_ms: rank(90), max_ms: rank(100) }
    }
}

/// Prints what was done and how long it took.
struct Report<'o> {
    out: &'o mut dyn Write,
    env: Env,
    since: Moment,
}

impl Report<'_> {
    fn done(&mut self, what: &str) -> io::Result<()> {
        let now = self.env.now();
        writeln!(self.out, "{:>7} ms  {what}", now.since(self.since).as_millis())?;
        self.since = now;
        Ok(())
    }
}

/// Starts a sandbox, walks, stops it.
pub async fn check(
    world: WorldSettings,
    settings: &CheckSettings,
    env: &Env,
    out: &mut dyn Write,
) -> Result<(), CheckError> {
    let mut report = Report { out, env: env.clone(), since: env.now() };
    let world = World::start(world, env).await?;
    report.done(&format!("started control plane, edge, DNS, origin and {}", world.outside.issuer.name()))?;
    let walked = walk(&world, settings, &mut report).await;
    let drained = world.drain().await;
    walked?;
    drained?;
    report.done("stopped cleanly")?;
    Ok(())
}

async fn walk(world: &World, settings: &CheckSettings, report: &mut Report<'_>) -> Result<(), CheckError> {
    for line in &settings.records {
        world.outside.zones.add(line).map_err(|error| Failed::new("publish the given records", error.to_string()))?;
    }
    let hostname = format!("support.{TENANT_ZONE}");
    let walk = Walk::new(world)?;
    walk.tenant().await?;
    report.done("tenant acme is there")?;
    let canonical = walk::target();
    walk.first_visit(&canonical).await?;
    walk.visited(&canonical).await?;
    report.done(&format!("https://{canonical} answers, under the imported wildcard certificate"))?;
    let domain = walk.claim(&hostname).await?;
    report.done(&format!("{hostname} is claimed"))?;
    walk.publish(&domain, &["CNAME", "TXT"])?;
    report.done("CNAME and TXT are published")?;
    let asked = walk.check_now(&domain).await?;
    walk.proven(&domain, asked).await?;
    report.done("all checks pass")?;
    walk.certified(&domain).await?;
    report.done("the certificate is stored")?;
    walk.active(&domain).await?;
    report.done("every edge serves it: the domain is active")?;
    walk.visited(&hostname).await?;
    report.done(&format!("https://{hostname} answers for tenant acme, trusted by the CA's root alone"))?;
    if let Some(times) = settings.repeat {
        let measured = repeat(&walk, times, report).await?;
        if settings.json {
            writeln!(report.out, "{}", serde_json::json!(measured))?;
        } else {
            let Measured { domains, p50_ms, p90_ms, max_ms } = measured;
            writeln!(
                report.out,
                "TXT published and check now → first page over HTTPS, {domains} domains: \
                 p50 {p50_ms} ms, p90 {p90_ms} ms, max {max_ms} ms"
            )?;
        }
    }
    Ok(())
}

async fn repeat(walk: &Walk<'_>, domains: usize, report: &mut Report<'_>) -> Result<Measured, CheckError> {
    let mut times = Vec::with_capacity(domains);
    for number in 0..domains {
        let hostname = format!("support-{}.{TENANT_ZONE}", number + 2);
        let domain = walk.claim(&hostname).await?;
        walk.publish(&domain, &["CNAME"])?;
        walk.first_look(&domain).await?;
        report.since = report.env.now();
        walk.publish(&domain, &["TXT"])?;
        walk.check_now(&domain).await?;
        walk.first_visit(&hostname).await?;
        let taken = report.env.now().since(report.since);
        times.push(u64::try_from(taken.as_millis()).unwrap_or(u64::MAX));
        report.done(&format!("https://{hostname}"))?;
    }
    Ok(Measured::of(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_by_rank() {
        assert_eq!(Measured::of((1..=20).rev().collect()), Measured { domains: 20, p50_ms: 10, p90_ms: 18, max_ms: 20 });
        assert_eq!(Measured::of(vec![7]), Measured { domains: 1, p50_ms: 7, p90_ms: 7, max_ms: 7 });
        assert_eq!(Measured::of(vec![]).max_ms, 0);
    }
}
