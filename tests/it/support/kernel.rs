//! What the kernel says of a process's memory.

use std::fs;

/// A number of kilobytes in the status of a process: `self`, or its number.
pub fn kb(process: &str, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Sets the highest mark of this process back to what it uses now.
pub fn forget_the_highest() {
    fs::write("/proc/self/clear_refs", "5").unwrap();
}

pub fn mb(kb: u64) -> f64 {
    f64::from(u32::try_from(kb).unwrap_or(u32::MAX)) / 1024.0
}
