//! `nameplate sandbox`

use std::io;
use std::path::PathBuf;

use super::args::{CaName, SandboxArgs};
use super::compose::stop_at_signal;
use super::{Out, Surroundings};
use crate::config::{Config, Sources};
use crate::env::Env;
use crate::sandbox::check::{CheckSettings, check};
use crate::sandbox::issuer::Choice;
use crate::sandbox::ports::Ports;
use crate::sandbox::run::run as play;
use crate::sandbox::world::WorldSettings;
use crate::telemetry;

/// What is logged unless the environment says otherwise: people read the sandbox's own lines.
const LEVEL: (&str, &str) = ("NAMEPLATE__LOG__LEVEL", "warn");

pub(super) async fn run(surroundings: &Surroundings, env: &Env, args: SandboxArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let level = (LEVEL.0.to_owned(), LEVEL.1.to_owned());
    let variables = std::iter::once(level).filter(|_| surroundings.variable(LEVEL.0).is_none());
    let variables = variables.chain(surroundings.variables.iter().cloned());
    telemetry::init(
        &Config::read(Sources::none().variables(variables).unreadable(surroundings.unreadable.iter().cloned()))?.log,
    )?;
    let ca = match args.ca {
        CaName::Test => Choice::Test,
        CaName::Pebble => Choice::Pebble(PathBuf::from("pebble")),
    };
    let json = out.json;
    let mut lines = io::LineWriter::new(out.writer());
    if args.check || args.repeat.is_some() {
        let world = WorldSettings { data: args.data, ca, ports: Ports::free().await? };
        let repeat = args.repeat.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let settings = CheckSettings { repeat, json, ..CheckSettings::default() };
        check(world, &settings, env, &mut lines).await?;
    } else {
        let stop = stop_at_signal()?;
        let world = WorldSettings { data: args.data, ca, ports: Ports::friendly().await? };
        play(world, env, &mut lines, stop.cancelled()).await?;
    }
    Ok(())
}
