//! `jobs`: the workers.

use super::reader::Reader;
use super::setting::Setting;

/// The section.
#[derive(Clone, Debug)]
pub struct JobsConfig {
    /// Domains that one process moves at the same time.
    pub concurrency: u32,
}

struct Concurrency(u32);

impl Setting for Concurrency {
    const EXPECTED: &'static str = "a whole number from 1 to 1024";
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|n| (1..=1024).contains(n)).map(Concurrency)
    }
    fn show(&self) -> String {
        self.0.to_string()
    }
}

impl JobsConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        JobsConfig {
            concurrency: r.value("jobs.concurrency", Concurrency(160), "Domains that one process moves at the same time: more than `looks.at_once` and the 90 looks that may wait.").0,
        }
    }
}
