//! `log`: what is written to standard error.

use super::reader::Reader;
use super::setting::Setting;

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Setting for LogFormat {
    const EXPECTED: &'static str = "text or json";
    fn read(text: &str) -> Option<Self> {
        match text {
            "text" => Some(LogFormat::Text),
            "json" => Some(LogFormat::Json),
            _ => None,
        }
    }
    fn show(&self) -> String {
        match self {
            LogFormat::Text => "text".into(),
            LogFormat::Json => "json".into(),
        }
    }
}

/// The section.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// The form of a line.
    pub format: LogFormat,
    /// What is logged.
    pub level: Level,
}

/// `error`, `warn`, `info`, `debug` or `trace`, alone or by target: `info,nameplate::dns=debug`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level(String);

impl Level {
    /// The directives as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Setting for Level {
    const EXPECTED: &'static str = "error, warn, info, debug or trace, alone or by module as in info,nameplate::dns=debug";
    fn read(text: &str) -> Option<Self> {
        let level = |l: &str| matches!(l, "off" | "error" | "warn" | "info" | "debug" | "trace");
        let word = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':'));
        let directive = |d: &str| d.split_once('=').map_or_else(|| level(d), |(target, l)| word(target) && level(l));
        text.split(',').all(directive).then(|| Level(text.to_owned()))
    }
    fn show(&self) -> String {
        self.0.clone()
    }
}

impl LogConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        LogConfig {
            format: r.value("log.format", LogFormat::Text, "`text` for people, `json` for machines; one line an event."),
            level: r.value(
                "log.level",
                Level("info".into()),
                "`error`, `warn`, `info`, `debug` or `trace`, alone or by module: `info,nameplate::dns=debug`.",
            ),
        }
    }
}
