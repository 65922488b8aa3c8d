//! Following an import: a bar with what is left on a terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::Method;

use super::bulk_shown::Shown;
use super::client::{ApiClient, Refused};
use crate::env::Env;
use crate::model::bulk::ImportState;
use crate::model::moment::Moment;
use crate::telemetry::one_line;

/// Between two questions.
const PACE: Duration = Duration::from_secs(1);
/// Between two questions while certificates are issued.
const SLOW_PACE: Duration = Duration::from_secs(10);
/// The server may be away for so long before following is given up.
const PATIENCE: Duration = Duration::from_secs(600);
/// Elsewhere than on a terminal a line is printed so often.
const LINES: Duration = Duration::from_secs(15);
/// How wide the bar is.
const WIDTH: u64 = 30;

/// Where progress is told.
pub(super) struct Progress<'a> {
    err: &'a mut dyn Write,
    env: Env,
    terminal: bool,
    drawn: bool,
    /// What is measured, since when, and from where.
    phase: Option<(&'static str, Moment, u64)>,
    told_at: Moment,
}

impl<'a> Progress<'a> {
    pub(super) fn new(err: &'a mut dyn Write, env: &Env) -> Self {
        let terminal = io::stderr().is_terminal();
        Progress { err, env: env.clone(), terminal, drawn: false, phase: None, told_at: env.now() }
    }

    /// A line by itself.
    pub(super) fn say(&mut self, text: &str) -> io::Result<()> {
        self.clear()?;
        writeln!(self.err, "nameplate: {}", one_line(text))
    }

    /// How far something is, and how long it takes at the pace of so far.
    pub(super) fn bar(&mut self, what: &'static str, done: u64, all: u64, unit: &str) -> io::Result<()> {
        let now = self.env.now();
        let (since, from) = match self.phase {
            Some((phase, since, from)) if phase == what => (since, from),
            _ => {
                self.phase = Some((what, now, done));
                (now, done)
            }
        };
        let spent = now.since(since).as_secs_f64();
        let pace = if spent > 1.0 { ratio(done.saturating_sub(from)) / spent } else { 0.0 };
        let left = (pace > 0.0).then(|| Duration::from_secs_f64((ratio(all.saturating_sub(done)) / pace).min(1e9)));
        let eta = left.filter(|_| done < all).map(|left| format!(", {} left", span(left))).unwrap_or_default();
        self.tell(what, done, all, &format!("{unit}{eta}"))
    }

    /// How far something is that has an end of its own.
    pub(super) fn tell(&mut self, what: &str, done: u64, all: u64, rest: &str) -> io::Result<()> {
        let percent = done.saturating_mul(100) / all.max(1);
        let text = format!("{what} {done} of {all} {rest} ({percent} %)");
        if self.terminal {
            let full = usize::try_from(done.saturating_mul(WIDTH) / all.max(1)).unwrap_or(0).min(30);
            write!(self.err, "\r\x1b[K[{}{}] {}", "#".repeat(full), ".".repeat(30 - full), one_line(&text))?;
            self.drawn = true;
            return self.err.flush();
        }
        if self.env.now().since(self.told_at) >= LINES {
            self.told_at = self.env.now();
            writeln!(self.err, "nameplate: {}", one_line(&text))?;
        }
        Ok(())
    }

    /// Takes the bar away.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.drawn) {
            write!(self.err, "\r\x1b[K")?;
            self.err.flush()?;
        }
        Ok(())
    }
}

/// A count as a number to divide; what is lost of very large ones is nothing that a bar shows.
fn ratio(n: u64) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

fn span(time: Duration) -> String {
    match time.as_secs() {
        secs @ 0..=119 => format!("{secs} s"),
        secs @ 120..=7_199 => format!("{} min", secs / 60),
        secs @ 7_200..=172_799 => format!("{} h", secs / 3_600),
        secs => format!("{} d", secs / 86_400),
    }
}

/// Asks again until it is answered, or the server was away for too long.
async fn ask(api: &ApiClient, env: &Env, shown: &Shown, progress: &mut Progress<'_>) -> anyhow::Result<Shown> {
    let since = env.now();
    let path = format!("/api/v1/imports/{}", shown.view.id);
    loop {
        match api.send(api.request(Method::GET, &path)).await {
            Ok(shown) => return Ok(shown),
            Err(e) if !passes_by_itself(&e) => return Err(e),
            Err(e) if env.now().since(since) >= PATIENCE => {
                return Err(e).with_context(|| {
                    format!("the import goes on without us; see: nameplate imports show {}", shown.view.id)
                });
            }
            Err(e) => {
                progress.say(&format!("{e:#}; the import goes on meanwhile, asking again"))?;
                env.sleep(SLOW_PACE).await;
            }
        }
    }
}

/// Whether the line or the server's state, and not the question, is at fault.
fn passes_by_itself(e: &anyhow::Error) -> bool {
    match e.downcast_ref::<Refused>() {
        Some(refused) => refused.passes,
        None => e.chain().any(|cause| cause.is::<reqwest::Error>()),
    }
}

/// Until every row has its verdict.
pub(super) async fn until_judged(
    api: &ApiClient,
    env: &Env,
    mut shown: Shown,
    progress: &mut Progress<'_>,
) -> anyhow::Result<Shown> {
    let mut paused = false;
    loop {
        let view = &shown.view;
        match view.state {
            ImportState::Done | ImportState::Cancelled => break,
            ImportState::Broken => bail!("the import was given up"),
            ImportState::Paused if !paused => {
                progress.say(&format!("The import is paused; it goes on with: nameplate imports resume {}", view.id))?;
            }
            ImportState::Receiving | ImportState::Working | ImportState::Paused => {}
        }
        paused = view.state == ImportState::Paused;
        let number = |n: i64| u64::try_from(n).unwrap_or(0);
        progress.bar(if view.dry_run { "checked" } else { "imported" }, number(view.judged), number(view.rows), "rows")?;
        env.sleep(PACE).await;
        shown = ask(api, env, &shown, progress).await?;
    }
    progress.clear()?;
    Ok(shown)
}

/// Until no claim of the import is on its way any more.
pub(super) async fn until_served(
    api: &ApiClient,
    env: &Env,
    mut shown: Shown,
    progress: &mut Progress<'_>,
) -> anyhow::Result<Shown> {
    if shown.view.claims.on_their_way() > 0 && shown.view.state != ImportState::Cancelled {
        progress.say(
            "Waiting until each name has its certificate or ended without one; the import goes on if this is stopped.",
        )?;
    }
    let mut paused = false;
    loop {
        let claims = &shown.view.claims;
        let all = claims.awaiting_dns + claims.queued + claims.live + claims.expired;
        // For the claims of one that was given up nothing comes any more.
        if claims.on_their_way() == 0 || shown.view.state == ImportState::Cancelled {
            break;
        }
        if shown.view.state == ImportState::Paused && !paused {
            let id = &shown.view.id;
            progress.say(&format!(
                "The import is paused: nothing is ordered for its names before it goes on, with: nameplate imports resume {id}"
            ))?;
        }
        paused = shown.view.state == ImportState::Paused;
        let end = shown.view.plan.as_ref().and_then(|plan| plan.last_order_at).filter(|at| *at > env.now());
        let end = end.map(|at| format!(", the last is ordered at {} at the earliest", at.in_words())).unwrap_or_default();
        let rest = format!("names; {} wait for DNS, {} for their certificate{end}", claims.awaiting_dns, claims.queued);
        let number = |n: i64| u64::try_from(n).unwrap_or(0);
        progress.tell("live", number(claims.live), number(all), &rest)?;
        env.sleep(SLOW_PACE).await;
        shown = ask(api, env, &shown, progress).await?;
    }
    progress.clear()?;
    Ok(shown)
}
