//! `nameplate config …`

use std::path::Path;

use super::args::{ConfigCommand, RoleName};
use super::{Out, Surroundings, load};
use crate::config::{Role, reference};

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
            let config = load(surroundings, file)?;
            if let Some(role) = role {
                config.check_for(match role {
                    RoleName::Serve => Role::Serve,
                    RoleName::Work => Role::Work,
                    RoleName::Edge => Role::Edge,
                })?;
            }
            if out.json {
                out.document(&serde_json::json!({ "problems": [] }))?;
            } else {
                out.line("The configuration has no problems.")?;
            }
        }
    }
    Ok(())
}
