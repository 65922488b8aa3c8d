//! Every reader of foreign octets against damaged input: what was good is bent, cut, doubled and mixed, and what a reader takes
//! is bent further. Nothing may panic, and what a reader takes must keep what it promises.
//!
//! `NAMEPLATE_FUZZ_SECONDS=600 cargo test --test it mutations` looks longer; `NAMEPLATE_FUZZ_SEED=7` looks elsewhere. A failure
//! names the reader, the seed and the input.

mod dns;
mod files;
mod handed;
mod mutator;
mod texts;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use nameplate::env::Env;

use crate::support::web::Web;
use mutator::Mutator;

/// How long all readers together are tried where nothing else is said.
const SECONDS: u64 = 12;
/// What is taken is kept to be bent further, up to so many.
const KEPT: usize = 200;
/// How often the clock is looked at.
const BETWEEN_LOOKS: usize = 16;

/// Reads octets; whether it took them.
type Read = Box<dyn Fn(&[u8]) -> bool>;

/// One reader of foreign octets.
pub struct Reader {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub seeds: Vec<Vec<u8>>,
    /// Reads; whether it took it. Panics where something does not hold that must.
    pub read: Read,
}

impl Reader {
    /// A reader of octets.
    pub fn octets(name: &'static str, seeds: Vec<Vec<u8>>, read: impl Fn(&[u8]) -> bool + 'static) -> Reader {
        Reader { name, seeds, read: Box::new(read) }
    }

    /// A reader of text.
    pub fn text(name: &'static str, seeds: &[&str], read: impl Fn(&str) -> bool + 'static) -> Reader {
        let seeds = seeds.iter().map(|s| s.as_bytes().to_vec()).collect();
        Reader::octets(name, seeds, move |octets| read(&String::from_utf8_lossy(octets)))
    }
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |n| n.parse().unwrap_or_else(|e| panic!("{variable}={n}: {e}")))
}

#[test]
fn no_reader_is_upset_by_damaged_input() {
    let env = Env::real();
    let seed = number("NAMEPLATE_FUZZ_SEED", 1);
    let readers: Vec<Reader> =
        [dns::readers(), texts::readers(), files::readers(), handed::readers()].into_iter().flatten().collect();
    let each = Duration::from_secs(number("NAMEPLATE_FUZZ_SECONDS", SECONDS)) / u32::try_from(readers.len()).unwrap();
    for reader in readers {
        let mut mutator = Mutator::new(seed);
        let mut pool = reader.seeds.clone();
        let taken = pool.iter().filter(|input| (reader.read)(input)).count();
        assert!(taken > 0, "{} takes none of its own samples", reader.name);
        let until = env.now() + each;
        let (mut tried, mut taken) = (0, 0);
        while tried % BETWEEN_LOOKS != 0 || env.now() < until {
            let input = mutator.bend(&pool);
            tried += 1;
            match catch_unwind(AssertUnwindSafe(|| (reader.read)(&input))) {
                Ok(false) => {}
                Ok(true) => {
                    taken += 1;
                    if pool.len() < KEPT {
                        pool.push(input);
                    }
                }
                Err(_) => panic!("{} (seed {seed}) is upset by {:?}", reader.name, input.escape_ascii().to_string()),
            }
        }
        println!("{}: {tried} inputs, {taken} taken", reader.name);
        assert!(tried > BETWEEN_LOOKS, "{} is too slow: {tried} inputs in {each:?}", reader.name);
    }
}

/// How many damaged cursors each list is asked with.
const CURSORS: usize = 60;

#[tokio::test]
async fn damaged_cursors_and_searches_are_refused_and_nothing_breaks() {
    let web = Web::new(71).await;
    let operator = web.operator.clone();
    let mut mutator = Mutator::new(number("NAMEPLATE_FUZZ_SEED", 1));
    let pool: Vec<Vec<u8>> =
        ["ZG9tXzAxOWIwMDAwMDAwMDcwMDA4MDAwMDAwMDAwMDAwMDAx", "MTIzIGNydF8wMTli", "AA", "support.acme.com", "%00"]
            .iter()
            .map(|s| s.as_bytes().to_vec())
            .collect();
    for path in ["domains?cursor=", "certificates?cursor=", "tenants?cursor=", "events?after=", "domains?hostname="] {
        for _ in 0..CURSORS {
            let text: String = mutator.bend(&pool).iter().take(400).map(|b| format!("%{b:02x}")).collect();
            let answer = web.api(&operator, "GET", &format!("/api/v1/{path}{text}"), None).await;
            assert!(answer.status.as_u16() < 500, "{path}{text}: {} {}", answer.status, answer.body);
        }
    }
}
