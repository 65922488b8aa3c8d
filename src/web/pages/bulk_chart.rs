//! The pictures of an import, drawn here as SVG beside the tables that say the same.

use super::when::absolute;
use crate::app::show::ImportView;
use crate::model::bulk::ImportState;
use crate::model::moment::Moment;
use crate::web::texts as t;

/// A part of the bar of verdicts.
pub(super) struct Bar {
    pub(super) name: &'static str,
    pub(super) tone: &'static str,
    pub(super) n: i64,
    /// Where it begins and how wide it is, of a thousand.
    pub(super) from: i64,
    pub(super) width: i64,
}

/// The verdicts as parts of one bar.
pub(super) fn bars(view: &ImportView) -> Vec<Bar> {
    let v = &view.verdicts;
    let parts = [
        (t::claimed(), "good", v.claimed),
        (t::would_be_claimed(), "good", v.would_be_claimed),
        (t::yours_already(), "link", v.already_yours),
        (t::repeated(), "off", v.duplicate),
        (t::not_taken(), "act", v.refused),
        (t::cancelled(), "off", v.cancelled),
        (t::verdict_waits(), "wait", v.pending),
    ];
    let all = view.rows.max(1);
    let mut before = 0;
    let mut out = Vec::new();
    for (name, tone, n) in parts.into_iter().filter(|(.., n)| *n > 0) {
        let at = |n: i64| (n.saturating_mul(1000) / all).clamp(0, 1000);
        let from = at(before);
        before += n;
        out.push(Bar { name, tone, n, from, width: (at(before) - from).max(2) });
    }
    out
}

/// The way of the orders through time, as planned, with how far it is now.
pub(super) struct Curve {
    /// The corners of the line, for SVG.
    pub(super) points: String,
    pub(super) starts: String,
    pub(super) ends: String,
    pub(super) orders: u64,
    /// Where now is, while it is between start and end.
    pub(super) now: Option<(i64, i64)>,
    pub(super) live: i64,
    /// Some points in words: when, and how many by then.
    pub(super) steps: Vec<(String, u64)>,
}

/// Size of the picture.
const WIDTH: i64 = 600;
const HEIGHT: i64 = 160;

/// The curve of a plan; none where there is nothing to order, or all at once.
pub(super) fn curve(view: &ImportView, now: Moment) -> Option<Curve> {
    let plan = view.plan.as_ref()?;
    let (first, last) = (plan.curve.first()?.at, plan.curve.last()?.at);
    if last <= first || plan.orders == 0 {
        return None;
    }
    let all = i64::try_from(plan.orders).unwrap_or(i64::MAX);
    let span = (last.micros() - first.micros()).max(1);
    let x = |at: Moment| ((at.micros() - first.micros()) / (span / WIDTH).max(1)).clamp(0, WIDTH);
    let y = |n: i64| HEIGHT - (n.saturating_mul(HEIGHT) / all.max(1)).clamp(0, HEIGHT);
    let mut points = format!("0,{HEIGHT}");
    for point in &plan.curve {
        points.push_str(&format!(" {},{}", x(point.at), y(i64::try_from(point.orders).unwrap_or(i64::MAX))));
    }
    let live = view.claims.live;
    let given_up = view.state == ImportState::Cancelled;
    let under_way = now >= first && now <= last && !view.dry_run && !given_up;
    let every = plan.curve.len().div_ceil(8).max(1);
    let steps = plan.curve.iter().rev().step_by(every).collect::<Vec<_>>().into_iter().rev();
    Some(Curve {
        points,
        starts: absolute(first),
        ends: absolute(last),
        orders: plan.orders,
        now: under_way.then(|| (x(now), y(live))),
        live,
        steps: steps.map(|p| (absolute(p.at), p.orders)).collect(),
    })
}
