//! The `nameplate` command.

fn main() {}
