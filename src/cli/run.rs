//! From arguments to an exit code.

use std::io::{self, Write};

use clap::Parser as _;

use super::args::{Cli, Command, EdgeArgs};
use super::compose::run_role;
use super::{
    Out, Surroundings, backup, bench, bulk, certificate, config, doctor, domain, domain_connect, edge, explain, issuer,
    links, manual, migrate, reissue, restore, sandbox, simulate, tenant, token, webhook,
};
use crate::config::Role;
use crate::env::Env;
use crate::telemetry::one_line;

/// Done.
const DONE: u8 = 0;
/// Done, but for some rows of a file.
const SOME_REFUSED: u8 = 3;
/// Stopped by a signal, as shells report it.
const INTERRUPTED: u8 = 130;
/// Tried and failed.
const FAILED: u8 = 1;

/// Runs one command. Answers go to `out`, all else to `err`.
pub async fn run(surroundings: &Surroundings, env: &Env, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let cli = match Cli::try_parse_from(&surroundings.arguments) {
        Ok(cli) => cli,
        Err(e) => {
            // An error here means that nobody reads any more: nothing is left to say.
            let _ = if e.use_stderr() { write!(err, "{e}") } else { write!(out, "{e}") };
            return u8::try_from(e.exit_code()).unwrap_or(FAILED);
        }
    };
    let file = cli.config.as_deref();
    let mut out = Out::new(out, cli.json);
    let done = match cli.command {
        Command::Serve => run_role(surroundings, file, env, Role::Serve).await,
        Command::Work => run_role(surroundings, file, env, Role::Work).await,
        Command::Edge(EdgeArgs { command: None }) => run_role(surroundings, file, env, Role::Edge).await,
        Command::Edge(EdgeArgs { command: Some(command) }) => edge::run(surroundings, file, env, command, &mut out).await,
        Command::Sandbox(args) => sandbox::run(surroundings, env, args, &mut out).await,
        Command::Migrate => migrate::run(surroundings, file, &mut out).await,
        Command::Tenant(command) => tenant::run(surroundings, file, env, command, &mut out).await,
        Command::Certificate(command) => certificate::run(surroundings, file, env, command, &mut out).await,
        Command::Issuer(command) => issuer::run(surroundings, file, env, command, &mut out).await,
        Command::Reissue(command) => reissue::run(surroundings, file, env, command, &mut out).await,
        Command::Token(command) => token::run(surroundings, file, env, command, &mut out).await,
        Command::Domain(args) => domain::run(surroundings, args, &mut out).await,
        Command::Import(args) => bulk::import(surroundings, env, args, &mut out, err).await,
        Command::Imports(args) => bulk::imports(surroundings, env, args, &mut out).await,
        Command::PortalLink(args) => links::portal(surroundings, args, &mut out).await,
        Command::HandOffLink(args) => links::hand_off(surroundings, args, &mut out).await,
        Command::Webhook(args) => webhook::run(surroundings, args, &mut out).await,
        Command::Alerts(args) => webhook::alerts(surroundings, args, &mut out).await,
        Command::DomainConnect(command) => domain_connect::run(surroundings, file, command, &mut out),
        Command::Explain(args) => explain::run(surroundings, args, &mut out).await,
        Command::Backup(args) => backup::backup(surroundings, file, args, &mut out).await,
        Command::Restore(args) => restore::restore(surroundings, file, env, args, &mut out).await,
        Command::Restored(args) => restore::restored(surroundings, file, env, args, &mut out).await,
        Command::Doctor(args) => doctor::run(surroundings, file, env, args, &mut out).await,
        Command::Simulate(command) => simulate::run(env, command, &mut out).await,
        Command::Bench(command) => bench::run(env, command, &mut out).await,
        Command::Config(command) => config::run(surroundings, file, command, &mut out),
        Command::Completions(args) => manual::completions(&args, &mut out),
        Command::Man(args) => manual::man(args, &mut out),
    };
    match done {
        Ok(()) => DONE,
        Err(e) if e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) => DONE,
        Err(e) if e.is::<bulk::Interrupted>() => INTERRUPTED,
        Err(e) if e.is::<bulk::SomeRefused>() => {
            let _ = writeln!(err, "nameplate: {e}");
            SOME_REFUSED
        }
        Err(e) => {
            // A configuration's problems are a list; everything else is one line.
            for line in format!("nameplate: {e:#}").lines() {
                let _ = writeln!(err, "{}", one_line(line));
            }
            FAILED
        }
    }
}
