//! Sending a file: read as it is sent, sent again when the line breaks. The server knows a second sending by its key.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use anyhow::{Context as _, bail};
use aws_lc_rs::digest::{Context as Digest, SHA256};
use clap::ValueEnum;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::bulk_follow::Progress;
use super::bulk_shown::Shown;
use super::client::ApiClient;
use crate::env::Env;

/// How often a file is sent before its sender is told that the server is away.
const TRIES: u32 = 8;
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Bytes read at once.
const PIECE: usize = 64 * 1024;

/// How a file is written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FileFormat {
    Csv,
    Ndjson,
}

/// What is to become of a file.
pub(super) struct Wanted<'a> {
    /// Whose the rows are that name no tenant.
    pub tenant: Option<&'a str>,
    /// Claim nothing.
    pub dry_run: bool,
    /// Add tenants that are not there.
    pub create_tenants: bool,
}

/// A file that is to be sent.
pub(super) struct FileToSend {
    file: File,
    name: String,
    kind: &'static str,
    length: u64,
    /// Its SHA-256, by which the server finds it again.
    pub(super) digest: String,
}

impl FileToSend {
    pub(super) fn open(path: &Path, format: Option<FileFormat>) -> anyhow::Result<Self> {
        let cannot = || format!("{} cannot be read", path.display());
        let mut file = File::open(path).with_context(cannot)?;
        if !file.metadata().with_context(cannot)?.is_file() {
            bail!("{} is no file; it is read twice, so it cannot be a pipe", path.display());
        }
        let mut digest = Digest::new(&SHA256);
        let (mut piece, mut length) = (vec![0; PIECE], 0_u64);
        loop {
            let read = file.read(&mut piece).with_context(cannot)?;
            if read == 0 {
                break;
            }
            digest.update(&piece[..read]);
            length += u64::try_from(read).unwrap_or(0);
        }
        let lines = path.extension().is_some_and(|end| end == "ndjson" || end == "jsonl");
        let ndjson = format.map_or(lines, |format| format == FileFormat::Ndjson);
        Ok(FileToSend {
            file,
            name: path.file_name().map_or_else(|| "names".into(), |name| name.to_string_lossy().into_owned()),
            kind: if ndjson { "application/x-ndjson" } else { "text/csv" },
            length,
            digest: digest.finish().as_ref().iter().map(|b| format!("{b:02x}")).collect(),
        })
    }

    /// The file from its start, counting what was sent.
    fn body(&self, sent: &Arc<AtomicU64>) -> anyhow::Result<FileBody> {
        let mut file = self.file.try_clone()?;
        std::io::Seek::rewind(&mut file)?;
        sent.store(0, Ordering::Relaxed);
        Ok(FileBody { file, left: self.length, sent: Arc::clone(sent) })
    }
}

/// The body of a request, read from a file piece by piece.
struct FileBody {
    file: File,
    left: u64,
    sent: Arc<AtomicU64>,
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Poller<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut piece = vec![0; PIECE.min(usize::try_from(self.left).unwrap_or(PIECE))];
        // A file answers at once; a client that sends one has nothing else to do.
        match self.file.read(&mut piece) {
            Ok(0) => Poll::Ready(Some(Err(std::io::Error::other("the file became shorter while it was sent")))),
            Ok(read) => {
                piece.truncate(read);
                let read = u64::try_from(read).unwrap_or(0);
                self.left = self.left.saturating_sub(read);
                self.sent.fetch_add(read, Ordering::Relaxed);
                Poll::Ready(Some(Ok(Frame::data(piece.into()))))
            }
            Err(e) => Poll::Ready(Some(Err(e))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// What became of one try.
enum Tried {
    Sent(Box<Shown>),
    /// It may do better later.
    Later(String),
}

/// Sends a file, again and again if need be.
pub(super) async fn send(
    api: &ApiClient,
    env: &Env,
    file: &FileToSend,
    wanted: &Wanted<'_>,
    progress: &mut Progress<'_>,
) -> anyhow::Result<Shown> {
    let mut question = vec![("name", file.name.as_str())];
    question.extend(wanted.tenant.map(|tenant| ("tenant", tenant)));
    question.extend(wanted.dry_run.then_some(("dry_run", "true")));
    question.extend(wanted.create_tenants.then_some(("create_tenants", "true")));
    let path = format!("/api/v1/imports?{}", crate::web::query(&question));
    let key = env.draw_hex(16);
    let mut pause = Duration::from_secs(1);
    for tried in 1..=TRIES {
        let why = match once(api, env, file, &path, &key, progress).await? {
            Tried::Sent(shown) => return Ok(*shown),
            Tried::Later(why) => why,
        };
        if tried == TRIES {
            bail!("{why}. Run the same command again: a row sent twice does no harm");
        }
        progress.say(&format!("{why}; sending it again in {} s", pause.as_secs()))?;
        env.sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    bail!("the file was not sent")
}

async fn once(
    api: &ApiClient,
    env: &Env,
    file: &FileToSend,
    path: &str,
    key: &str,
    progress: &mut Progress<'_>,
) -> anyhow::Result<Tried> {
    let sent = Arc::new(AtomicU64::new(0));
    let request = api
        .request(Method::POST, path)
        .header("content-type", file.kind)
        .header("idempotency-key", key)
        .body(reqwest::Body::wrap(file.body(&sent)?));
    let mut answer = std::pin::pin!(async {
        let answer = request.send().await?;
        Ok::<_, reqwest::Error>((answer.status(), answer.bytes().await?))
    });
    let answered = loop {
        tokio::select! {
            biased;
            answered = &mut answer => break answered,
            () = env.sleep(Duration::from_millis(200)) => {
                progress.bar("sent", sent.load(Ordering::Relaxed), file.length, "bytes")?;
            }
        }
    };
    let (status, body) = match answered {
        Ok(answered) => answered,
        Err(e) if e.is_builder() => return Err(e).context("the request cannot be made"),
        Err(_) => return Ok(Tried::Later("the API cannot be reached, or the line broke".into())),
    };
    if status.is_success() {
        let shown = serde_json::from_slice(&body).context("the API answered in an unknown form")?;
        return Ok(Tried::Sent(Box::new(shown)));
    }
    let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |field: &str| problem.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (code, detail) = (text("code"), text("detail"));
    let passes = status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || matches!(code.as_str(), "idempotency_in_flight" | "body_cut_off" | "body_too_slow");
    if passes {
        return Ok(Tried::Later(if detail.is_empty() { format!("the API answered {status}") } else { detail }));
    }
    if code.is_empty() { bail!("the API answered {status}") } else { bail!("nothing was imported: {detail} ({code})") }
}
