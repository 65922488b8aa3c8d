//! What a visitor's HTTP/1.1 bytes say about where a request ends, looked at before anything is made of them.
//!
//! A request that gives its length twice (Content-Length beside Transfer-Encoding, or either of them doubled) is how requests
//! are smuggled past a proxy (RFC 9112 section 11.2). The parser behind settles such heads by the book and forgets that there
//! was anything to settle; here they are noticed, so that they can be refused. [`Wire`] is the stream between the two: it also
//! lets the connection be answered after the parser gave up on it.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest header name of interest.
const NAME: usize = 24;

/// What was noticed on a connection.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// A head gave its length twice, or folds a line: nothing more on this connection can be trusted to begin where it seems to.
    ambiguous: AtomicBool,
    /// A head has begun and not ended.
    in_head: AtomicBool,
    /// What follows is no HTTP.
    raw: AtomicBool,
}

impl Notes {
    pub(super) fn is_ambiguous(&self) -> bool {
        self.ambiguous.load(Ordering::Relaxed)
    }

    pub(super) fn in_head(&self) -> bool {
        self.in_head.load(Ordering::Relaxed)
    }

    /// From now on bytes are passed on unread: the connection is a tunnel.
    pub(super) fn leave_http(&self) {
        self.raw.store(true, Ordering::Relaxed);
    }
}

/// Where in a request the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// In a line of the head; whether the request line is behind.
    Head { headers: bool },
    /// In a body of known length.
    Sized(u64),
    /// In the line before a chunk, with the size so far; whether the size has ended.
    ChunkSize(u64, bool),
    /// In a chunk.
    Chunk(u64),
    /// After a chunk.
    ChunkEnd,
    /// In the lines after the last chunk.
    Trailers,
    /// Nothing can be said any more.
    Lost,
}

/// Follows the bytes of one connection.
#[derive(Debug)]
pub(super) struct Framing {
    at: At,
    notes: Arc<Notes>,
    /// The beginning of the line: a header's name in lower case.
    name: [u8; NAME],
    length: usize,
    colon: bool,
    /// The value of Content-Length, as far as it is a number.
    value: Option<u64>,
    content_lengths: u32,
    transfer_encodings: u32,
    body: u64,
}

impl Framing {
    pub(super) fn new(notes: Arc<Notes>) -> Framing {
        Framing {
            at: At::Head { headers: false },
            notes,
            name: [0; NAME],
            length: 0,
            colon: false,
            value: None,
            content_lengths: 0,
            transfer_encodings: 0,
            body: 0,
        }
    }

    /// Takes the bytes that are passed on next.
    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        if self.notes.raw.load(Ordering::Relaxed) {
            return;
        }
        while let Some((byte, rest)) = bytes.split_first() {
            match self.at {
                At::Lost => return,
                At::Sized(left) | At::Chunk(left) => {
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    bytes = &bytes[here..];
                    let left = left - u64::try_from(here).unwrap_or(left);
                    self.at = match (self.at, left) {
                        (At::Sized(_), 0) => At::Head { headers: false },
                        (At::Sized(_), left) => At::Sized(left),
                        (_, 0) => At::ChunkEnd,
                        (_, left) => At::Chunk(left),
                    };
                }
                At::Head { headers } => {
                    self.head(headers, *byte);
                    bytes = rest;
                }
                At::ChunkSize(size, ended) => {
                    self.at = chunk_size(size, ended, *byte);
                    bytes = rest;
                }
                At::ChunkEnd => {
                    if *byte == b'\n' {
                        self.at = At::ChunkSize(0, false);
                    }
                    bytes = rest;
                }
                At::Trailers => {
                    if *byte == b'\n' {
                        if self.length == 0 {
                            self.at = At::Head { headers: false };
                        }
                        self.length = 0;
                    } else if *byte != b'\r' {
                        self.length += 1;
                    }
                    bytes = rest;
                }
            }
        }
    }

    fn head(&mut self, headers: bool, byte: u8) {
        if byte == b'\n' {
            return self.line_ends(headers);
        }
        if byte == b'\r' {
            return;
        }
        if !headers {
            self.length += 1;
            self.notes.in_head.store(true, Ordering::Relaxed);
            return;
        }
        if self.colon {
            return self.value_goes_on(byte);
        }
        match byte {
            // A line that goes on from the one before (RFC 9112 section 5.2).
            b' ' | b'\t' if self.length == 0 => self.doubt(),
            b':' => {
                self.colon = true;
                self.value = None;
            }
            _ => {
                if let Some(place) = self.name.get_mut(self.length) {
                    *place = byte.to_ascii_lowercase();
                }
                self.length += 1;
            }
        }
    }

    fn value_goes_on(&mut self, byte: u8) {
        if byte.is_ascii_digit() {
            let digit = u64::from(byte - b'0');
            self.value = self.value.unwrap_or(0).checked_mul(10).and_then(|v| v.checked_add(digit));
        }
    }

    fn line_ends(&mut self, headers: bool) {
        let empty = self.length == 0 && !self.colon;
        let name = self.name.get(..self.length).unwrap_or_default().trim_ascii_end();
        if headers && self.colon {
            match name {
                b"content-length" => {
                    self.content_lengths += 1;
                    self.body = self.value.unwrap_or(0);
                }
                b"transfer-encoding" => self.transfer_encodings += 1,
                _ => {}
            }
        }
        self.length = 0;
        self.colon = false;
        if !empty {
            self.at = At::Head { headers: true };
        } else if headers {
            self.head_ends();
        }
    }

    fn head_ends(&mut self) {
        self.notes.in_head.store(false, Ordering::Relaxed);
        if self.content_lengths + self.transfer_encodings > 1 {
            return self.doubt();
        }
        self.at = match (self.transfer_encodings, self.body) {
            (0, 0) => At::Head { headers: false },
            (0, body) => At::Sized(body),
            _ => At::ChunkSize(0, false),
        };
        (self.content_lengths, self.transfer_encodings, self.body) = (0, 0, 0);
    }

    fn doubt(&mut self) {
        self.notes.ambiguous.store(true, Ordering::Relaxed);
        self.at = At::Lost;
    }
}

fn chunk_size(size: u64, ended: bool, byte: u8) -> At {
    match (byte, char::from(byte).to_digit(16)) {
        (b'\n', _) if size == 0 => At::Trailers,
        (b'\n', _) => At::Chunk(size),
        (_, Some(digit)) if !ended => {
            size.checked_mul(16).map_or(At::Lost, |size| At::ChunkSize(size + u64::from(digit), false))
        }
        _ => At::ChunkSize(size, true),
    }
}

/// A visitor's stream under the parser's hands: looked into, and still at hand once the parser let go.
pub(super) struct Wire<S>(Arc<Mutex<Inner<S>>>);

struct Inner<S> {
    stream: S,
    framing: Framing,
}

impl<S> Wire<S> {
    pub(super) fn new(stream: S, notes: Arc<Notes>) -> Wire<S> {
        Wire(Arc::new(Mutex::new(Inner { stream, framing: Framing::new(notes) })))
    }

    /// A second hand on the same stream.
    pub(super) fn again(&self) -> Wire<S> {
        Wire(Arc::clone(&self.0))
    }

    fn inner(&self) -> MutexGuard<'_, Inner<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.inner();
        let before = buf.filled().len();
        ready!(Pin::new(&mut inner.stream).poll_read(cx, buf))?;
        inner.framing.take(buf.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner().stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner().stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether the bytes are ambiguous, and where they leave off, however they are cut.
    fn follow(bytes: &[u8], cut: usize) -> (bool, At) {
        let notes = Arc::<Notes>::default();
        let mut framing = Framing::new(Arc::clone(&notes));
        for part in bytes.chunks(cut.max(1)) {
            framing.take(part);
        }
        (notes.is_ambiguous(), framing.at)
    }

    const BETWEEN: (bool, At) = (false, At::Head { headers: false });

    #[test]
    fn requests_that_say_their_length_once_follow_each_other() {
        let good: [&[u8]; 7] = [
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\r\n\nGET / HTTP/1.1\nHost: a\n\n",
            b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab\r\nc",
            b"POST / HTTP/1.1\r\nCONTENT-LENGTH:0\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na\r\nbc\r\n0\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nA;x=y\r\n0123456789\r\n0\r\nT: v\r\nContent-Length: 9\r\n\r\n",
            b"GET / HTTP/1.1\r\nX-Content-Length: 5\r\nContent-Length-Of-Something-Else: 6\r\nContent-Type: 7\r\n\r\n",
        ];
        let all = good.concat();
        for cut in [1, 2, 3, 7, 4096] {
            for one in good {
                assert_eq!(follow(one, cut), BETWEEN, "{}", String::from_utf8_lossy(one));
            }
            assert_eq!(follow(&all, cut), BETWEEN);
        }
    }

    #[test]
    fn a_length_given_twice_is_noticed_also_after_other_requests() {
        let bad: [&[u8]; 8] = [
            b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
            b"POST / HTTP/1.1\r\ncontent-length : 5\r\nContent-Length: 6\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"POST / HTTP/1.1\nContent-Length: 5\nTransfer-Encoding: identity\n\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
            b"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        ];
        let before = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcPOST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
        for one in bad {
            for cut in [1, 5, 4096] {
                assert!(follow(one, cut).0, "{}", String::from_utf8_lossy(one));
                assert!(follow(&[before.as_slice(), one].concat(), cut).0, "{}", String::from_utf8_lossy(one));
            }
        }
    }

    #[test]
    fn a_head_that_began_is_told_from_a_connection_that_is_idle() {
        let notes = Arc::<Notes>::default();
        let mut framing = Framing::new(Arc::clone(&notes));
        framing.take(b"\r\n");
        assert!(!notes.in_head());
        framing.take(b"GET / HT");
        assert!(notes.in_head());
        framing.take(b"TP/1.1\r\n\r\n");
        assert!(!notes.in_head());
        notes.leave_http();
        framing.take(b"\x81\x05hello");
        assert!(!notes.in_head());
    }

    proptest! {
        #[test]
        fn junk_is_followed_without_a_panic_and_alike_however_it_is_cut(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b':'), Just(b'9'), Just(b'f')], 0..400),
            cut in 1usize..50,
        ) {
            prop_assert_eq!(follow(&bytes, cut), follow(&bytes, 4096));
        }

        #[test]
        fn bodies_are_never_read_as_heads(body in prop::collection::vec(any::<u8>(), 1..200), cut in 1usize..20) {
            let sized = [format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat();
            prop_assert_eq!(follow(&sized, cut), BETWEEN);
            let head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
            let chunked = [head, format!("{:x}\r\n", body.len()).as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
            prop_assert_eq!(follow(&chunked, cut), BETWEEN);
        }
    }
}
