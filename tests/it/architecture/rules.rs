//! The layers, the homes of other people's crates, and what keeps the model pure.

use super::source::{Reach, Token, module_of, reaches, tokens};

/// From top to bottom: a folder may import the layers below its own, and itself. The roots stand above all.
const LAYERS: &[&[&str]] = &[
    &["lib", "main"],
    &["cli"],
    &["simulate"],
    &["sandbox"],
    &["roles"],
    &["web", "jobs", "edge", "agent"],
    &["app", "feed"],
    &["store", "vault", "dns", "acme", "reach", "aliases", "notify"],
    &["config", "telemetry", "env"],
    &["model"],
];

/// The imports inside one layer that are allowed all the same.
const SIDEWAYS: &[(&str, &str)] = &[("telemetry", "config")];

/// Macros of ours live at the crate's root by Rust's rules; this is where each is written.
const ROOT_MACROS: &[(&str, &str)] = &[("mint", "env")];

/// What runs on a machine without a database: these folders, and the reader's side of the feed.
const FAR_SIDE: &[&str] = &[
    "edge",
    "agent",
    "feed/client",
    "feed/copy",
    "feed/follow",
    "feed/join",
    "feed/member",
    "feed/pin",
    "feed/replica",
    "feed/wire",
];

/// All that the far side may import.
const FAR_SIDE_MAY: &[&str] = &[
    "feed::client",
    "feed::copy",
    "feed::follow",
    "feed::join",
    "feed::member",
    "feed::pin",
    "feed::replica",
    "feed::wire",
    "vault::distribution",
    "vault::signing",
    "env",
    "config",
    "telemetry",
    "model",
];

/// Crates (or their common beginning) that have a home, and the files and folders that are it.
const HOMES: &[(&str, &[&str])] = &[
    ("sqlx", &["store", "jobs/queue"]),
    ("rusqlite", &["store/sqlite", "store/row"]),
    ("ulid", &["jobs/queue"]),
    ("apalis", &["jobs/queue"]),
    ("instant_acme", &["acme"]),
    ("hickory_", &["dns", "sandbox"]),
    ("axum", &["web", "feed/publisher", "sandbox"]),
    ("lettre", &["notify/mail"]),
    ("prometheus_client", &["telemetry"]),
    ("utoipa", &["web", "app/show", "app/explain"]),
];

/// The only other crates, or parts of them, that the model may name.
const MODEL_CRATES: &[&str] = &[
    "aws_lc_rs::constant_time",
    "base64",
    "csv_core",
    "idna",
    "proptest",
    "psl",
    "serde",
    "serde_json",
    "thiserror",
    "time",
    "uuid",
    "zeroize",
];

/// What the model may not take from those and from the standard library.
const MODEL_NEVER: &[&str] = &[
    "std::env",
    "std::fs",
    "std::io",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::ToSocketAddrs",
    "std::net::UdpSocket",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
];

/// One broken rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken {
    /// Relative to `src`.
    pub file: String,
    /// Counted from one.
    pub line: usize,
    /// What is wrong and what holds instead.
    pub rule: String,
}

/// What `text`, the content of `file` (relative to `src`), breaks. `crates` are the dependencies, in Rust's spelling.
pub fn check(file: &str, text: &str, crates: &[String]) -> Vec<Broken> {
    let tokens = tokens(text);
    let mut out = Vec::new();
    for reach in reaches(&tokens, &module_of(file)) {
        let rule = if reach.ours { own_path(file, &reach) } else { foreign_path(file, &reach, crates) };
        out.extend(rule.map(|rule| Broken { file: file.to_owned(), line: reach.line, rule }));
    }
    if is_in(file, "model") {
        out.extend(waits(&tokens).map(|line| Broken {
            file: file.to_owned(),
            line,
            rule: "the model never waits: no async code here".to_owned(),
        }));
    }
    out
}

/// Whether `file` is the folder or module `place` or lies in it.
fn is_in(file: &str, place: &str) -> bool {
    file.strip_prefix(place).is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
}

fn folder_of(file: &str) -> &str {
    file.split('/').next().unwrap_or(file).trim_end_matches(".rs")
}

fn layer(folder: &str) -> Option<usize> {
    LAYERS.iter().position(|names| names.contains(&folder))
}

fn own_path(file: &str, reach: &Reach) -> Option<String> {
    let from = folder_of(file);
    let Some(own) = layer(from) else {
        return Some(format!("`{from}` stands in no layer: give it one in tests/it/architecture/rules.rs"));
    };
    if own == 0 {
        return None;
    }
    let path = reach.segments.join("::");
    let to = match reach.segments.first().map_or("*", String::as_str) {
        "*" => return Some("the crate's root is imported whole: name the folder that is meant".to_owned()),
        first => ROOT_MACROS.iter().find(|(name, _)| *name == first).map_or(first, |(_, home)| *home),
    };
    let Some(theirs) = layer(to) else {
        return Some(format!("`{path}` lies in no layer: give `{to}` one in tests/it/architecture/rules.rs"));
    };
    let within = from == to || SIDEWAYS.contains(&(from, to));
    if theirs < own {
        return Some(format!("`{path}` is up: `{from}` lies below `{to}`"));
    }
    if theirs == own && !within {
        return Some(format!("`{path}` is sideways: `{from}` and `{to}` share a layer and do not know each other"));
    }
    let far = FAR_SIDE.iter().find(|place| is_in(file, place))?;
    let allowed = is_in_path(&path, from) && !is_in(file, "feed") || FAR_SIDE_MAY.iter().any(|may| is_in_path(&path, may));
    (!allowed && to != "env")
        .then(|| format!("`{path}`: `{far}` runs without a database and may import only {}", FAR_SIDE_MAY.join(", ")))
}

/// Whether the path is `place` or lies in it.
fn is_in_path(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn foreign_path(file: &str, reach: &Reach, crates: &[String]) -> Option<String> {
    let name = reach.segments.first()?;
    if !crates.contains(name) && name != "std" {
        return None;
    }
    if let Some((_, homes)) = HOMES.iter().find(|(start, _)| name.starts_with(start))
        && !homes.iter().any(|home| is_in(file, home))
    {
        return Some(format!("`{name}` has its home in {}", homes.join(", ")));
    }
    if !is_in(file, "model") {
        return None;
    }
    let path = reach.segments.join("::");
    if name != "std" && !MODEL_CRATES.iter().any(|may| is_in_path(&path, may)) {
        return Some(format!("`{path}` in the model, which is pure and names only {}", MODEL_CRATES.join(", ")));
    }
    let whole = path.trim_end_matches("::*");
    let never = MODEL_NEVER.iter().find(|never| is_in_path(&path, never) || is_in_path(never, whole))?;
    Some(format!("`{path}`: `{never}` reaches the outside world, which the model never does"))
}

fn waits(tokens: &[Token]) -> impl Iterator<Item = usize> {
    tokens.windows(2).filter_map(|pair| {
        let waits = pair[0].text == "async" || pair[0].text == "." && pair[1].text == "await";
        waits.then_some(pair[0].line)
    })
}
