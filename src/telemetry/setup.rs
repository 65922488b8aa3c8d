//! Sets the process's subscriber.

use std::io::{self, Write};

use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::OneLine;
use crate::config::{LogConfig, LogFormat};

/// Logging was set up twice.
#[derive(Debug, thiserror::Error)]
#[error("logging is already set up in this process")]
pub struct AlreadySet;

struct OneLines<M>(M);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for OneLines<M> {
    type Writer = OneLine<M::Writer>;
    fn make_writer(&'a self) -> Self::Writer {
        OneLine(self.0.make_writer())
    }
}

/// A subscriber that writes to what `make` makes.
pub fn subscriber<W, F>(config: &LogConfig, make: F) -> Box<dyn Subscriber + Send + Sync>
where
    W: Write + 'static,
    F: Fn() -> W + Send + Sync + 'static,
{
    // The level was checked when it was read; a directive this crate does not know falls back to its own default.
    let filter = EnvFilter::try_new(config.level.as_str()).unwrap_or_default();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(OneLines(make));
    match config.format {
        LogFormat::Text => Box::new(builder.finish()),
        LogFormat::Json => Box::new(builder.json().flatten_event(true).finish()),
    }
}

/// Sets up the process's log on standard error.
pub fn init(config: &LogConfig) -> Result<(), AlreadySet> {
    tracing::subscriber::set_global_default(subscriber(config, io::stderr)).map_err(|_| AlreadySet)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::config::{Config, Sources};

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: &str) -> String {
        let sources = Sources::none().variables([("NAMEPLATE__LOG__FORMAT".to_owned(), format.to_owned())]);
        let config = Config::read(sources).unwrap().log;
        let sink = Sink::default();
        let copy = sink.clone();
        tracing::subscriber::with_default(subscriber(&config, move || copy.clone()), || {
            let hostile = "a.example\n2026-01-01T00:00:00Z  INFO forged\r\x1b[2K\u{2028}\u{202e}\u{85}x";
            tracing::info!(host = hostile, other = %hostile, "seen {hostile}");
            tracing::debug!("not at this level");
        });
        let bytes = sink.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn outsiders_cannot_forge_lines() {
        for format in ["text", "json"] {
            let text = logged(format);
            assert_eq!(text.matches('\n').count(), 1, "{text}");
            assert!(text.ends_with('\n') && !text.contains(['\r', '\x1b', '\u{2028}', '\u{202e}', '\u{85}']), "{text}");
            assert!(text.contains("a.example"), "{text}");
        }
        assert!(serde_json::from_str::<serde_json::Value>(&logged("json")).is_ok());
    }
}
