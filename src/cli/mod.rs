//! The command line: one file a subcommand.
//!
//! `main` hands over the arguments and the environment; nothing here reads either by itself. Commands that administer
//! (`tenant`, `token`, `migrate`) open the store; `domain` and `explain` speak to the API like anybody else. Answers go to standard
//! output, as tables or with `--json` as the documents themselves; everything else goes to standard error. Exit codes:
//! 0 done, 1 failed, 2 not understood, 3 done but for some rows
//! that were not taken, 130 stopped by a signal. May import everything. To fake it: run the binary with a file database. How to get it
//! wrong: print what came from outside without [`Out`], which keeps it from acting on the terminal.

mod args;
mod backup;
mod bench;
mod bulk;
mod bulk_follow;
mod bulk_send;
mod bulk_shown;
mod certificate;
mod client;
mod compose;
mod config;
mod doctor;
mod domain;
mod domain_connect;
mod domain_text;
mod edge;
mod explain;
mod issuer;
mod links;
mod manual;
mod migrate;
mod out;
mod reissue;
mod restore;
mod run;
mod sandbox;
mod simulate;
mod simulate_year;
mod surroundings;
mod tenant;
mod tenant_remove;
mod token;
mod webhook;

pub use compose::load;
pub use out::Out;
pub use run::run;
pub use surroundings::Surroundings;
