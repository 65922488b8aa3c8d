//! One JSON line a request, written by a thread of its own: a slow disk costs lines, never a visitor's time.
//!
//! What came from outside is bounded and escaped twice over: as JSON, and so that no terminal or log reader acts on it.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use serde::Serialize;
use tokio::sync::oneshot;

use crate::telemetry::metrics::EdgeMeters;
use crate::telemetry::one_line;

/// Lines that wait for the disk at most.
const WAITING: usize = 8_192;
/// Bytes of what a visitor sent that are written at most.
const BOUND: usize = 2_048;
/// The word that means standard output.
const STDOUT: &str = "stdout";
/// From here on an answer is written whatever the sample.
const ALWAYS: u16 = 500;

/// A request, as its line tells it.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    pub(super) time: String,
    pub(super) request_id: &'a str,
    pub(super) client: String,
    pub(super) protocol: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls: Option<&'static str>,
    pub(super) host: Option<&'a str>,
    pub(super) tenant: Option<&'a str>,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    /// None when the visitor went away before there was an answer.
    pub(super) status: Option<u16>,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    pub(super) duration_ms: f64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) tunnel: bool,
}

/// The text without what goes beyond the bound.
pub(super) fn bounded(text: &str) -> &str {
    let mut end = text.len().min(BOUND);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The hand that gives lines away.
pub(super) struct AccessLog {
    lines: SyncSender<String>,
    sample: u64,
    seen: AtomicU64,
    meters: Arc<EdgeMeters>,
}

/// Resolves once every line was written and the file let go of.
pub(super) struct Written(oneshot::Receiver<()>);

impl Written {
    pub(super) async fn wait(self) {
        // An error means that the writer is gone: there is nothing to wait for either.
        let _ = self.0.await;
    }
}

impl AccessLog {
    /// Opens the file, to append, and starts its writer.
    pub(super) fn open(path: &Path, sample: u32, meters: Arc<EdgeMeters>) -> io::Result<(AccessLog, Written)> {
        let out: Box<dyn Write + Send> = if path.as_os_str() == STDOUT {
            Box::new(io::stdout())
        } else {
            Box::new(OpenOptions::new().append(true).create(true).open(path)?)
        };
        let (lines, waiting) = sync_channel(WAITING);
        let (done, written) = oneshot::channel();
        std::thread::Builder::new().name("access-log".to_owned()).spawn(move || {
            write_all(out, &waiting);
            // Nobody may be waiting for it.
            let _ = done.send(());
        })?;
        Ok((AccessLog { lines, sample: u64::from(sample.max(1)), seen: AtomicU64::new(0), meters }, Written(written)))
    }

    /// Whether this request leaves a line.
    pub(super) fn wants(&self, status: Option<u16>) -> bool {
        let turn = self.seen.fetch_add(1, Ordering::Relaxed).is_multiple_of(self.sample);
        turn || status.is_some_and(|status| status >= ALWAYS)
    }

    /// Gives a line away, or drops it.
    pub(super) fn write(&self, line: &Line<'_>) {
        let Ok(text) = serde_json::to_string(line) else { return };
        let text = format!("{}\n", one_line(&text));
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.lines.try_send(text) {
            self.meters.access_line_dropped();
        }
    }
}

/// Writes what comes, and flushes whenever nothing more is waiting.
fn write_all(out: Box<dyn Write + Send>, waiting: &Receiver<String>) {
    let mut out = BufWriter::new(out);
    let mut broken = false;
    while let Ok(first) = waiting.recv() {
        let mut next = Some(first);
        let mut done = Ok(());
        while let Some(line) = next {
            done = done.and_then(|()| out.write_all(line.as_bytes()));
            next = waiting.try_recv().ok();
        }
        match done.and_then(|()| out.flush()) {
            Ok(()) => broken = false,
            // Told once, not once a line.
            Err(error) if !broken => {
                broken = true;
                tracing::error!(%error, "the access log cannot be written; lines are lost until it can");
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line<'a>(path: &'a str, host: Option<&'a str>) -> Line<'a> {
        Line {
            time: "2026-01-01T00:00:00Z".to_owned(),
            request_id: "00",
            client: "192.0.2.1".to_owned(),
            protocol: "h1",
            tls: Some("1.3"),
            host,
            tenant: None,
            method: "GET",
            path: bounded(path),
            status: Some(200),
            bytes_in: 0,
            bytes_out: 1,
            duration_ms: 0.5,
            tunnel: false,
        }
    }

    async fn written(lines: &[Line<'_>]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("access.log");
        let (log, done) = AccessLog::open(&file, 1, Arc::default()).unwrap();
        lines.iter().for_each(|line| log.write(line));
        drop(log);
        done.wait().await;
        std::fs::read_to_string(file).unwrap()
    }

    #[tokio::test]
    async fn a_request_is_one_line_of_json_whatever_it_asked_for() {
        let hostile = "/a\n{\"forged\":1}\r\u{1b}[2J\u{2028}\u{202e}\"\\\u{0}\u{85}";
        let long = "/é".repeat(5_000);
        let text = written(&[line(hostile, Some("a.example")), line(&long, None)]).await;
        assert_eq!(text.matches('\n').count(), 2);
        assert!(!text.contains(['\r', '\u{1b}', '\u{2028}', '\u{202e}', '\0', '\u{85}']));
        let read: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(read[0]["path"], hostile);
        assert_eq!((&read[1]["host"], read[1]["path"].as_str().unwrap().len() <= BOUND), (&serde_json::Value::Null, true));
    }

    #[test]
    fn one_of_so_many_is_taken_and_what_failed_always() {
        let dir = tempfile::tempdir().unwrap();
        let (log, _) = AccessLog::open(&dir.path().join("a"), 10, Arc::default()).unwrap();
        let taken = (0..100).filter(|_| log.wants(Some(200))).count();
        let failed = (0..100).filter(|_| log.wants(Some(502))).count();
        assert_eq!((taken, failed), (10, 100));
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_told_at_once() {
        assert!(AccessLog::open(Path::new("/nowhere/access.log"), 1, Arc::default()).is_err());
    }

    proptest! {
        #[test]
        fn any_path_reads_back_from_one_line(path in "\\PC{0,80}|.{0,80}") {
            let text = one_line(&serde_json::to_string(&line(&path, None)).unwrap()).into_owned();
            prop_assert!(!text.chars().any(char::is_control), "{text:?}");
            let read: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(read["path"].as_str().unwrap(), bounded(&path));
        }
    }
}
