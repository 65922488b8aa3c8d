//! `nameplate completions` and `nameplate man`: made from the grammar itself.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::Out;
use super::args::Cli;

#[derive(Args)]
pub(super) struct CompletionsArgs {
    /// Which shell; for bash, put it where bash-completion looks: ~/.local/share/bash-completion/completions/nameplate
    pub shell: Shell,
}

#[derive(Args)]
pub(super) struct ManArgs {
    /// Write a page for every subcommand into this directory instead
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

pub(super) fn completions(args: &CompletionsArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "nameplate", &mut text);
    out.writer().write_all(&text)?;
    Ok(())
}

pub(super) fn man(args: ManArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let Some(dir) = args.dir else {
        let mut text = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut text)?;
        out.writer().write_all(&text)?;
        return Ok(());
    };
    std::fs::create_dir_all(&dir).with_context(|| format!("the directory {} cannot be made", dir.display()))?;
    clap_mangen::generate_to(Cli::command(), &dir)
        .with_context(|| format!("the pages cannot be written to {}", dir.display()))?;
    if out.json {
        out.document(&serde_json::json!({ "directory": dir }))?;
    } else {
        out.line(&format!("The pages are in {}.", dir.display()))?;
    }
    Ok(())
}
