//! A walk that fails, told by the fewest acts that still make it fail in the same way.

use std::collections::BTreeSet;

use super::pure::Walk;
use super::rows::Broken;

/// Walks that are tried for it.
const TRIES: usize = 200;

/// What is wrong, without ids and names: whether two walks fail alike.
fn kind(why: &str) -> String {
    let first = why.lines().next().unwrap_or_default();
    let plain = |word: &&str| !word.contains(['.', '_', '(', ':', '"']) && !word.bytes().any(|b| b.is_ascii_digit());
    first.split(' ').filter(plain).take(12).collect::<Vec<_>>().join(" ")
}

/// The failure, with the acts that matter.
pub fn told(seed: u64, broken: Broken, steps: usize, why: &str) -> String {
    let wanted = kind(why);
    let try_without = |without: &BTreeSet<usize>| {
        let mut walk = Walk::leaving_out(seed, broken, without.clone());
        let failed = walk.run(steps).err().filter(|why| kind(why) == wanted);
        failed.map(|why| (why, walk.acts()))
    };
    let (mut without, mut best, mut tries) = (BTreeSet::new(), (why.to_owned(), steps), 0);
    let Some(found) = try_without(&without) else { return format!("seed {seed}: {why}") };
    best = (found.0, found.1.min(best.1));
    let mut chunk = best.1.div_ceil(2);
    while chunk > 0 && tries < TRIES {
        let mut from = 0;
        while from < best.1 && tries < TRIES {
            let mut fewer = without.clone();
            fewer.extend(from..(from + chunk).min(best.1));
            from += chunk;
            if fewer.len() == without.len() {
                continue;
            }
            tries += 1;
            if let Some(found) = try_without(&fewer) {
                (without, best) = (fewer, found);
            }
        }
        chunk /= 2;
    }
    let left = best.1 - without.range(..best.1).count();
    format!("seed {seed}, by {left} acts of {}: {}", best.1, best.0)
}
