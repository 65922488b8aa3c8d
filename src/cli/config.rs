//! `nameplate config …`

use std::path::Path;

use serde_json::json;

use super::args::{ConfigCommand, RoleName};
use super::compose::{file_in_use, no_file};
use super::{Out, Surroundings, load};
use crate::config::{ConfigError, Problem, Role, reference};
use crate::vault::MasterKey;

pub(super) fn run(
    surroundings: &Surroundings,
    file: Option<&Path>,
    command: ConfigCommand,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    match command {
        ConfigCommand::Reference => {
            for line in reference().lines() {
                out.line(line)?;
            }
        }
        ConfigCommand::Check { role } => {
            let problems = problems(surroundings, file, role)?;
            if out.json {
                let told = |p: &Problem| json!({ "key": p.key, "origin": p.origin, "message": p.message });
                let read = file_in_use(file).map(|path| path.display().to_string());
                out.document(&json!({ "file": read, "problems": problems.iter().map(told).collect::<Vec<_>>() }))?;
            } else if problems.is_empty() {
                let none = || format!("Beware: {}. Name one with --config FILE.", no_file(surroundings));
                out.line(&file_in_use(file).map_or_else(none, |path| format!("Read {}.", path.display())))?;
                out.line("The configuration has no problems.")?;
            }
            if !problems.is_empty() {
                let wrong = anyhow::Error::from(ConfigError(problems));
                return Err(match file_in_use(file) {
                    Some(_) => wrong,
                    None => wrong.context(no_file(surroundings)),
                });
            }
        }
    }
    Ok(())
}

/// All that is wrong, whatever part of the start would stumble over it. Fails where there is nothing to look at.
fn problems(surroundings: &Surroundings, file: Option<&Path>, role: Option<RoleName>) -> anyhow::Result<Vec<Problem>> {
    let config = match load(surroundings, file) {
        Ok(config) => config,
        Err(e) => return e.downcast::<ConfigError>().map(|ConfigError(problems)| problems),
    };
    let role = role.map(|role| match role {
        RoleName::Serve => Role::Serve,
        RoleName::Work => Role::Work,
        RoleName::Edge => Role::Edge,
    });
    let mut problems = role.and_then(|role| config.check_for(role).err()).map(|e| e.0).unwrap_or_default();
    let vault = &config.vault;
    let current = vault.master_key.iter().map(|key| ("vault.master_key", vault.master_key_version, key));
    let older = vault.older_keys.iter().map(|(version, key)| ("vault.older_keys", *version, key));
    for (name, version, key) in current.chain(older) {
        if let Err(e) = MasterKey::from_text(version, key.expose_str().unwrap_or_default()) {
            problems.push(Problem { key: name.into(), origin: String::new(), message: format!("version {version}: {e}") });
        }
    }
    Ok(problems)
}
