//! A mailbox: an SMTP server (RFC 5321) that takes what it is given and shows it on a page; or defers, refuses and hangs up, as
//! it is told.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use rustls::ServerConfig;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// So many messages are kept.
const KEPT: usize = 200;
/// Bytes of a message at most.
const LARGEST: usize = 1024 * 1024;

/// What the mailbox does with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Takes it.
    Take,
    /// Puts it off: 451.
    Defer,
    /// Refuses its addressee for good: 550.
    Refuse,
    /// Hangs up in the middle of it.
    HangUp,
}

/// A message that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The sender of the envelope.
    pub from: String,
    /// The addressees of the envelope.
    pub to: Vec<String>,
    /// Head and body as they came, lines ending in a line feed.
    pub text: String,
}

#[derive(Default)]
struct Held {
    letters: VecDeque<Letter>,
    moods: VecDeque<Mood>,
    sessions: usize,
}

/// The mailbox; clones share what is in it.
#[derive(Clone, Default)]
pub struct Mailbox(Arc<Mutex<Held>>);

impl Mailbox {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came, oldest first.
    pub fn letters(&self) -> Vec<Letter> {
        self.held().letters.iter().cloned().collect()
    }

    /// What becomes of the messages to come, one each; those after them are taken.
    pub fn moods(&self, moods: impl IntoIterator<Item = Mood>) {
        self.held().moods = moods.into_iter().collect();
    }

    /// How often somebody connected.
    pub fn sessions(&self) -> usize {
        self.held().sessions
    }

    /// Serves until the listener breaks; with `tls`, from the first byte.
    pub async fn serve(self, listener: TcpListener, tls: Option<Arc<ServerConfig>>) -> io::Result<()> {
        let acceptor = tls.map(TlsAcceptor::from);
        loop {
            let (stream, _) = listener.accept().await?;
            let (mailbox, acceptor) = (self.clone(), acceptor.clone());
            mailbox.held().sessions += 1;
            tokio::spawn(async move {
                let ended = match acceptor {
                    None => mailbox.session(stream).await,
                    Some(acceptor) => match acceptor.accept(stream).await {
                        Ok(stream) => mailbox.session(stream).await,
                        Err(error) => Err(error),
                    },
                };
                if let Err(error) = ended {
                    tracing::debug!(%error, "a session of the mailbox ended early");
                }
            });
        }
    }

    async fn session(&self, stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        stream.write_all(b"220 mailbox.test ESMTP\r\n").await?;
        let (mut from, mut to) = (String::new(), Vec::new());
        let mut mood = None;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let line = line.trim_end();
            let verb = line.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
            let answer = match verb.as_str() {
                "EHLO" => "250-mailbox.test\r\n250 8BITMIME",
                "HELO" | "NOOP" | "RSET" => "250 well",
                "MAIL" => {
                    from = address(line);
                    to.clear();
                    mood = self.held().moods.pop_front();
                    "250 well"
                }
                "RCPT" if mood == Some(Mood::Refuse) => "550 5.1.1 there is nobody of that name here",
                "RCPT" if mood == Some(Mood::Defer) => "451 4.7.1 come again later",
                "RCPT" => {
                    to.push(address(line));
                    "250 well"
                }
                "DATA" if to.is_empty() => "503 to whom?",
                "DATA" => {
                    stream.write_all(b"354 go on\r\n").await?;
                    if mood == Some(Mood::HangUp) {
                        return Ok(());
                    }
                    let text = body(&mut stream).await?;
                    self.keep(Letter { from: from.clone(), to: to.clone(), text });
                    "250 taken"
                }
                "QUIT" => {
                    stream.write_all(b"221 good-bye\r\n").await?;
                    return Ok(());
                }
                _ => "502 not here",
            };
            stream.write_all(format!("{answer}\r\n").as_bytes()).await?;
        }
    }

    fn keep(&self, letter: Letter) {
        let mut held = self.held();
        if held.letters.len() == KEPT {
            held.letters.pop_front();
        }
        held.letters.push_back(letter);
    }

    /// A page with what came, the latest first, as text.
    pub fn page(&self) -> Router {
        Router::new().route("/mail", get(show)).with_state(self.clone())
    }
}

/// What stands between the brackets.
fn address(line: &str) -> String {
    let inside = line.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    inside.map_or_else(String::new, |(address, _)| address.to_owned())
}

/// Lines up to the one with a single dot, dots that were doubled taken away.
async fn body(stream: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> io::Result<String> {
    let mut text = String::new();
    loop {
        let mut line = Vec::new();
        if stream.read_until(b'\n', &mut line).await? == 0 || text.len() > LARGEST {
            return Err(io::Error::other("a message without an end"));
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\r', '\n']);
        if line == "." {
            return Ok(text);
        }
        text.push_str(line.strip_prefix('.').filter(|_| line.starts_with("..")).unwrap_or(line));
        text.push('\n');
    }
}

async fn show(State(mailbox): State<Mailbox>) -> impl IntoResponse {
    let letters = mailbox.letters();
    let mut text = format!("{} so far, the latest first.\n", letters.len());
    for letter in letters.iter().rev() {
        text.push_str(&format!(
            "\n{}\nFrom {} to {}\n\n{}\n",
            "=".repeat(72),
            letter.from,
            letter.to.join(", "),
            letter.text
        ));
    }
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")], text)
}
