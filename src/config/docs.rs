//! The reference of all keys, written from the keys themselves.

use std::fmt::Write as _;

use super::root::Config;

const HEAD: &str = "# Configuration

Nameplate reads one TOML file (`--config FILE`, or `nameplate.toml` in the working directory where there is one) and the
environment. `server.listen` is the key `listen` in the table `[server]`, or the variable `NAMEPLATE__SERVER__LISTEN`;
variables win over the file. Lists are TOML lists, or texts separated by commas. Only variables that begin with `NAMEPLATE__`
are read, and each of them must name a key.

A key that does not exist, or a value that cannot be read, stops the start with the key's name.
`nameplate config check` prints all problems at once and changes nothing; with `--role serve`, `work` or `edge` it also says
what that role still needs. Keys that end in `_file` name a file that holds the value, for secrets.

This page is written from the keys the program knows; a test holds it to them.
";

/// The text of `docs/configuration.md`.
pub fn reference() -> String {
    let mut out = HEAD.to_owned();
    let mut section = String::new();
    for key in Config::keys() {
        let (table, _) = key.name.rsplit_once('.').unwrap_or(("", &key.name));
        if table != section {
            section = table.to_owned();
            let _ = write!(out, "\n## `[{section}]`\n\n| Key | Default | Meaning |\n|---|---|---|\n");
        }
        let default = match key.default.as_deref() {
            None => "not set".to_owned(),
            Some("") => "none".to_owned(),
            Some(text) => format!("`{text}`"),
        };
        let _ = writeln!(out, "| `{}` | {default} | {} |", key.name, key.doc);
    }
    out
}
