//! The `nameplate` command.

use std::io::{stderr, stdout};
use std::process::ExitCode;

use nameplate::cli::{Surroundings, run};
use nameplate::env::Env;

/// For small objects that one thread makes and another drops, which is what a server has.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    // The one cryptographic provider; a second call finds it installed.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let surroundings = Surroundings::new(std::env::args_os(), std::env::vars_os());
    ExitCode::from(run(&surroundings, &Env::real(), &mut stdout(), &mut stderr()).await)
}
