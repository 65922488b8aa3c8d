//! Takeover, tried in earnest: random tenants, claims, edits of DNS, removals, lapses, silence, restores, edges that lag, and a judge that
//! knows nothing of how the product decides.
//!
//! `NAMEPLATE_TAKEOVER_STEPS=1000000 cargo test --test it takeover` walks further; `NAMEPLATE_TAKEOVER_SEED=7` walks elsewhere.

mod edges;
mod engine;
mod feed;
mod oracle;
mod pure;
mod recovery;
mod rows;
mod shrink;
mod stories;

use std::collections::BTreeMap;

use pure::Walk;
use rows::Broken;

/// Steps of all pure walks together, where nothing else is said.
const STEPS: usize = 100_000;
/// Steps of one walk: rows are never deleted, so a longer one only gets slower.
const OF_ONE: usize = 4_000;

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).map_or(otherwise, |n| n.parse().unwrap_or_else(|e| panic!("{variable}={n}: {e}")))
}

#[test]
fn no_walk_of_a_hundred_thousand_steps_gives_a_name_to_whom_it_is_not() {
    let (steps, first) = (number("NAMEPLATE_TAKEOVER_STEPS", STEPS), number("NAMEPLATE_TAKEOVER_SEED", 1));
    let (mut taken, mut seed, mut seen) = (0, u64::try_from(first).unwrap(), BTreeMap::new());
    while taken < steps {
        let (mut walk, length) = (Walk::new(seed, Broken::Nothing), OF_ONE.min(steps - taken).max(1));
        if let Err(why) = walk.run(length) {
            panic!("{}", shrink::told(seed, Broken::Nothing, length, &why));
        }
        for (what, n) in walk.oracle.seen {
            *seen.entry(what).or_insert(0) += n;
        }
        taken += walk.steps;
        seed += 1;
    }
    let often = [
        ("held", 300),
        ("live", 300),
        ("another holds", 100),
        ("handed over", 50),
        ("untied", 50),
        ("lost its proof", 5),
        ("returned", 10),
        ("forced", 15),
        ("free", 50),
        ("restored", 100),
        ("recovered", 50),
        ("let_go", 10),
        ("newer", 10),
        ("unknown", 10),
        ("followed late", 500),
        ("an edge started again", 100),
    ];
    enough(&seen, &often, taken, STEPS);
}

/// A walk in which nothing happens is no proof: each thing happened so often, in proportion where fewer steps were taken.
fn enough(seen: &BTreeMap<&'static str, usize>, often: &[(&'static str, usize)], taken: usize, of: usize) {
    for (what, at_least) in often {
        let (n, wanted) = (seen.get(what).copied().unwrap_or(0), at_least * taken.min(of) / of);
        assert!(n >= wanted, "too little happened in {taken} steps: {what} {n} times instead of {wanted} of {seen:?}");
    }
}

/// Each way to break what keeps names safe is seen by the judge, as what it is.
#[test]
fn the_judge_sees_every_break() {
    for (broken, words) in [
        (Broken::TakesFromAnyone, "which is not its holder"),
        (Broken::SilenceIsAbsence, "without reason"),
        (Broken::RouteStays, "which was let go of by its tenant"),
        (Broken::WayIsProof, "without proof"),
        (Broken::TieIsForEver, "far longer than the grace"),
        (Broken::FormerForgotten, "while what tenant"),
        (Broken::SharedWayTies, "far longer than the grace"),
        (Broken::EdgesUntold, "an edge serves"),
        (Broken::MemoryIgnored, "which was let go of by its tenant"),
        (Broken::RestoredIsTrusted, "is served by edges and is ordered again"),
    ] {
        let mut others = Vec::new();
        let found = (1..60).find_map(|seed| {
            let said = Walk::new(seed, broken).run(OF_ONE).err()?;
            let first = said.lines().next().unwrap_or_default().to_owned();
            if first.contains(words) {
                Some(first)
            } else {
                others.push(first);
                None
            }
        });
        assert!(found.is_some(), "{broken:?} goes unseen: {others:#?}");
    }
}

/// Turns of the walks through the whole engine, where nothing else is said.
const TURNS: usize = 3_000;
const TURNS_OF_ONE: usize = 500;

#[tokio::test]
async fn no_walk_through_the_engine_gives_a_name_to_whom_it_is_not() {
    let turns = number("NAMEPLATE_TAKEOVER_TURNS", TURNS);
    let (mut taken, mut caught_up, mut seen) = (0, 0, BTreeMap::new());
    let mut seed = u64::try_from(number("NAMEPLATE_TAKEOVER_SEED", 1)).unwrap();
    while taken < turns {
        let mut walk = engine::Walk::new(seed).await;
        if let Err(why) = walk.run(TURNS_OF_ONE.min(turns - taken).max(1)).await {
            panic!("seed {seed}: {why}");
        }
        for (what, n) in walk.oracle.seen {
            *seen.entry(what).or_insert(0) += n;
        }
        (taken, caught_up, seed) = (taken + walk.turns, caught_up + walk.caught_up, seed + 1);
    }
    let often = [("held", 20), ("live", 15), ("another holds", 2), ("returned", 2), ("forced", 2), ("restored", 4)];
    enough(&seen, &often, taken, TURNS);
    assert!(caught_up > turns / 50, "the late edge followed {caught_up} times in {taken} turns");
}
