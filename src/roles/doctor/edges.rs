//! The edges, how far they follow, and the certificate of the canonical hosts.

use super::Report;
use crate::app::imports;
use crate::config::Config;
use crate::env::Env;
use crate::model::conclude::FRESH_EDGE;
use crate::model::moment::Moment;
use crate::store::edges::{self, EdgeRow, EdgeStatus};
use crate::store::{Store, StoreError, feed, restore};
use crate::telemetry::Chain;

const PART: &str = "edges";
/// Parts of its lifetime that an imported certificate has left when it is pointed out, and when it is called broken: one of 90
/// days with 22 and with 3, one of 6 days with 36 hours and with 5.
const SOON: i64 = 4;
const TOO_LATE: i64 = 30;
/// Changes an edge may be behind while others are just being sent.
const LAG: i64 = 1_000;

pub(super) async fn examine(config: &Config, store: &Store, env: &Env, report: &mut Report) {
    if let Err(e) = all_edges(config, store, env.now(), report).await {
        report.broken(PART, "edges", Chain(&e).to_string(), "check the database's own log");
    }
    if let Err(e) = certificates(store, env.now(), report).await {
        report.broken("certificates", "canonical hosts", Chain(&e).to_string(), "check the database's own log");
    }
}

async fn all_edges(config: &Config, store: &Store, now: Moment, report: &mut Report) -> Result<(), StoreError> {
    let position =
        if feed::load(store).await?.is_some() { Some(feed::position(&mut store.read().await?).await?) } else { None };
    if let Some(since) = restore::recovering_since(&mut store.read().await?).await? {
        let seen = format!("under way since {}", since.rfc3339());
        report.warn(
            PART,
            "recovery",
            seen,
            "when all is back: nameplate restored --end; until then edges let go of nothing",
        );
    }
    let mut counted = 0_u32;
    for edge in edges::list(store).await?.iter().filter(|edge| edge.status == EdgeStatus::Active) {
        let what = format!("edge {}", edge.name);
        let age = now.since(edge.heartbeat_at);
        let behind =
            position.map_or(0, |p| if p.epoch == edge.cursor.epoch { p.seq - edge.cursor.seq } else { p.seq.max(1) });
        if behind < 0 {
            // Not heard of either: the feed refuses it until somebody says what happened.
            let seen = format!("{} changes ahead of the feed", -behind);
            let advice = "this database is an older copy: stop serve, run `nameplate restored`, start serve again";
            report.broken(PART, what, seen, advice);
            continue;
        }
        if age >= FRESH_EDGE {
            let seen = format!("not heard of since {} ({} s)", edge.heartbeat_at.rfc3339(), age.as_secs());
            let advice = format!(
                "look at its log and whether it reaches feed.url; if it is gone for good: nameplate edge revoke {}",
                edge.name
            );
            report.broken(PART, what, seen, advice);
            continue;
        }
        counted += u32::from(edge.lost_at.is_none());
        followed(edge, what, behind, report);
    }
    let seen = format!("{counted} of at least {} count", config.feed.min_edges);
    match counted >= config.feed.min_edges {
        true => report.ok(PART, "counted edges", seen),
        false => {
            let advice = "start an edge (its token: nameplate token create --edge): no certificate is ordered before enough of them count";
            report.broken(PART, "counted edges", seen, advice);
        }
    }
    Ok(())
}

fn followed(edge: &EdgeRow, what: String, behind: i64, report: &mut Report) {
    if let Some(since) = edge.lost_at {
        let seen = format!("left behind since {}", since.rfc3339());
        report.broken(PART, what, seen, "look at its log: it missed a challenge and is not counted until it has caught up");
    } else if behind > LAG {
        report.warn(PART, what, format!("{behind} changes behind"), "look at its log, its disk and its way to feed.url");
    } else {
        report.ok(PART, what, format!("heard of, {behind} changes behind"));
    }
}

async fn certificates(store: &Store, now: Moment, report: &mut Report) -> Result<(), StoreError> {
    const PART: &str = "certificates";
    let (listed, uncovered) = imports::list(store).await?;
    let import = "import one: nameplate certificate import --chain FILE --key FILE";
    for l in &listed {
        let c = &l.certificate;
        let what = c.names.join(" ");
        let days = (c.not_after.secs() - now.secs()).div_euclid(86_400);
        let seen = format!("good until {} ({days} d), for {} hosts", c.not_after.rfc3339(), l.hosts);
        let (left, lifetime) = (c.not_after.micros() - now.micros(), c.not_after.micros() - c.not_before.micros());
        if left <= lifetime / TOO_LATE {
            report.broken(PART, what, seen, format!("it ends or has ended: {import}"));
        } else if left <= lifetime / SOON {
            report.warn(PART, what, seen, format!("before it ends, {import}"));
        } else {
            report.ok(PART, what, seen);
        }
    }
    match uncovered {
        0 => report.ok(PART, "canonical hosts", "each has a certificate"),
        n => report.warn(PART, "canonical hosts", format!("{n} have no certificate"), import),
    }
    Ok(())
}
