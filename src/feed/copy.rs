//! The last good copy on disk: one sealed snapshot and a journal of sealed deltas behind it.
//!
//! A new snapshot replaces both by atomic renames; a delta costs one appended, synced frame. Each copy is sealed under a key
//! of its own, wrapped for the reader's own key, so the files are worth nothing without `member.json`. A journal whose tail
//! was torn by a crash is read up to the tear: what is missing comes again from the feed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::member::write_atomically;
use crate::env::Env;
use crate::model::feed::{Deltas, Snapshot};
use crate::model::feed_apply::Book;
use crate::model::secret::Secret;
use crate::vault::distribution::{DistributionError, DistributionKey, EdgeKeyPair, Label, Packet, Wrapped};

const SNAPSHOT: &str = "copy.sealed";
const JOURNAL: &str = "copy.journal";
/// A journal is folded into the snapshot when it is longer than this and longer than the snapshot itself.
const JOURNAL_AT_LEAST: u64 = 1 << 20;
/// Bytes of one frame; a longer length is a tear.
const LONGEST_FRAME: u32 = 1 << 30;

/// Why the copy is of no use.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The disk said no.
    #[error("could not {act} the copy in {dir:?}")]
    Disk {
        /// What was tried.
        act: &'static str,
        /// The state directory.
        dir: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is not what this reader wrote.
    #[error("the copy in {0:?} is cut short, changed or of another edge; a new one is taken from the feed")]
    Broken(PathBuf),
    /// It could not be sealed.
    #[error("the copy could not be sealed")]
    Seal(#[from] DistributionError),
}

/// What a reader of this build takes from an entry. A copy of an earlier build lacks what that one did not read: it is served
/// from, and replaced by a snapshot at the first word with the control plane. 1: redirects of hosts.
const READS: u32 = 1;

/// What a copy holds: the book, and the wrapped distribution keys its certificates open with.
#[derive(Serialize, Deserialize)]
struct Held {
    #[serde(default)]
    reads: u32,
    snapshot: Snapshot,
    keys: Vec<Vec<u8>>,
}

#[derive(Serialize, Deserialize)]
struct Step {
    deltas: Deltas,
    keys: Vec<Vec<u8>>,
}

/// What was read back.
pub struct Restored {
    /// The book.
    pub book: Book,
    /// The wrapped distribution keys.
    pub keys: Vec<Wrapped>,
    /// Whether it may lack what this build reads of an entry.
    pub outdated: bool,
}

/// The copy of one reader.
pub struct Copy {
    dir: PathBuf,
    env: Env,
    open: Option<Open>,
}

/// The copy that deltas are appended to.
struct Open {
    key: DistributionKey,
    journal: File,
    journaled: u64,
    frames: u64,
    snapshot_len: u64,
}

fn snapshot_label() -> Label<'static> {
    Label { kind: "copy", id: "snapshot", version: 0 }
}

/// Frames are numbered, so that one dropped from the middle is a tear and not a silent gap.
fn frame_label(number: u64) -> Label<'static> {
    Label { kind: "copy", id: "frame", version: number }
}

impl Copy {
    /// The copy in a state directory.
    pub fn new(dir: &Path, env: Env) -> Copy {
        Copy { dir: dir.to_owned(), env, open: None }
    }

    fn disk(&self, act: &'static str) -> impl Fn(io::Error) -> CopyError + use<> {
        let dir = self.dir.clone();
        move |source| CopyError::Disk { act, dir: dir.clone(), source }
    }

    /// Reads the copy back; none when there never was one.
    pub fn load(&mut self, own: &EdgeKeyPair) -> Result<Option<Restored>, CopyError> {
        let bytes = match std::fs::read(self.dir.join(SNAPSHOT)) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(self.disk("read")(e)),
        };
        let broken = || CopyError::Broken(self.dir.clone());
        let (wrapped, packet) = split_frame(&bytes).ok_or_else(broken)?;
        let key = Wrapped::try_from(wrapped.to_vec()).and_then(|w| own.unwrap(&w)).map_err(|_| broken())?;
        let packet = Packet::try_from(packet.to_vec()).map_err(|_| broken())?;
        let plain = key.open(snapshot_label(), &packet).map_err(|_| broken())?;
        let held: Held = serde_json::from_slice(plain.expose()).map_err(|_| broken())?;
        let mut book = Book::from_snapshot(held.snapshot);
        let mut keys = held.keys;
        let mut journal = Vec::new();
        match File::open(self.dir.join(JOURNAL)) {
            Ok(mut file) => drop(file.read_to_end(&mut journal).map_err(self.disk("read"))?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(self.disk("read")(e)),
        }
        for step in steps(&journal, &key) {
            if book.apply(step.deltas).is_err() {
                break;
            }
            if !step.keys.is_empty() {
                keys = step.keys;
            }
        }
        let keys = keys.into_iter().filter_map(|k| Wrapped::try_from(k).ok()).collect();
        Ok(Some(Restored { book, keys, outdated: held.reads < READS }))
    }

    /// Writes a whole new copy.
    pub fn replace(&mut self, own: &EdgeKeyPair, book: &Book, keys: &[Wrapped]) -> Result<(), CopyError> {
        let key = DistributionKey::generate(&self.env);
        let held = Held { reads: READS, snapshot: book.to_snapshot(), keys: raw(keys) };
        let plain = Secret::new(serde_json::to_vec(&held).unwrap_or_default());
        let packet = key.seal(&self.env, snapshot_label(), &plain)?;
        let mut bytes = frame(key.wrap_for(&self.env, &own.public())?.as_bytes());
        bytes.extend_from_slice(packet.as_bytes());
        self.open = None;
        // The old journal does not open under the new key: between the two steps it is merely ignored.
        write_atomically(&self.dir.join(SNAPSHOT), &bytes).map_err(self.disk("write"))?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let journal = options.open(self.dir.join(JOURNAL)).map_err(self.disk("write"))?;
        let snapshot_len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.open = Some(Open { key, journal, journaled: 0, frames: 0, snapshot_len });
        Ok(())
    }

    /// Adds what changed; `book` is the outcome, for when it is time to write a whole new copy. `keys` when they changed.
    pub fn append(
        &mut self,
        own: &EdgeKeyPair,
        deltas: &Deltas,
        book: &Book,
        keys: &[Wrapped],
        keys_changed: bool,
    ) -> Result<(), CopyError> {
        let disk = self.disk("append to");
        let Some(open) = self.open.as_mut() else { return self.replace(own, book, keys) };
        if open.journaled > JOURNAL_AT_LEAST.max(open.snapshot_len) {
            return self.replace(own, book, keys);
        }
        let step = Step { deltas: deltas.clone(), keys: if keys_changed { raw(keys) } else { Vec::new() } };
        let plain = Secret::new(serde_json::to_vec(&step).unwrap_or_default());
        let bytes = frame(open.key.seal(&self.env, frame_label(open.frames), &plain)?.as_bytes());
        let written = open.journal.write_all(&bytes).and_then(|()| open.journal.sync_data());
        open.frames += 1;
        open.journaled += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if written.is_err() {
            // A frame may be torn: nothing may follow it.
            self.open = None;
        }
        written.map_err(disk)
    }
}

fn raw(keys: &[Wrapped]) -> Vec<Vec<u8>> {
    keys.iter().map(|k| k.as_bytes().to_vec()).collect()
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [len.to_be_bytes().as_slice(), bytes].concat()
}

fn split_frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let len = u32::from_be_bytes(*len);
    if len > LONGEST_FRAME { None } else { rest.split_at_checked(usize::try_from(len).ok()?) }
}

/// The steps up to the first that does not open.
fn steps<'a>(mut journal: &'a [u8], key: &'a DistributionKey) -> impl Iterator<Item = Step> + 'a {
    (0..).map_while(move |number| {
        let (bytes, rest) = split_frame(journal)?;
        journal = rest;
        let plain = key.open(frame_label(number), &Packet::try_from(bytes.to_vec()).ok()?).ok()?;
        serde_json::from_slice(plain.expose()).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::manual::Hand;
    use crate::model::feed::{ChallengeEntry, Entry, Position};
    use crate::model::hostname::Hostname;
    use crate::model::moment::Moment;

    fn challenge(n: i64) -> Deltas {
        let entry = ChallengeEntry {
            token: format!("token{n}"),
            hostname: Hostname::trusted("a.example.com"),
            key_authorization: Some("a secret answer".to_owned()),
            version: 1,
        };
        Deltas { epoch: 1, after: n - 1, upto: n, entries: vec![Entry::Challenge(entry)] }
    }

    /// A state directory with a copy of `frames` deltas, and the book it should give back.
    fn written(dir: &Path, frames: i64) -> (EdgeKeyPair, Book) {
        let env = Hand::new(Moment::default(), 3).env();
        let own = EdgeKeyPair::generate(&env).unwrap();
        let mut book = Book::from_snapshot(Snapshot { position: Position { epoch: 1, seq: 0 }, entries: vec![] });
        let mut copy = Copy::new(dir, env.clone());
        assert!(copy.load(&own).unwrap().is_none());
        let key = DistributionKey::generate(&env).wrap_for(&env, &own.public()).unwrap();
        copy.replace(&own, &book, &[]).unwrap();
        for n in 1..=frames {
            book.apply(challenge(n)).unwrap();
            copy.append(&own, &challenge(n), &book, std::slice::from_ref(&key), n == 1).unwrap();
        }
        (own, book)
    }

    fn read(dir: &Path, own: &EdgeKeyPair) -> Result<Option<Restored>, CopyError> {
        Copy::new(dir, Hand::new(Moment::default(), 4).env()).load(own)
    }

    #[test]
    fn a_copy_comes_back_with_its_journal_and_keys_and_shows_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (own, book) = written(dir.path(), 3);
        let back = read(dir.path(), &own).unwrap().unwrap();
        assert_eq!((back.book, back.keys.len()), (book, 1));
        for name in [SNAPSHOT, JOURNAL] {
            let bytes = std::fs::read(dir.path().join(name)).unwrap();
            assert!(!bytes.windows(6).any(|w| w == b"secret" || w == b"a.exam"), "{name}");
        }
        let stranger = EdgeKeyPair::generate(&Hand::new(Moment::default(), 9).env()).unwrap();
        assert!(matches!(read(dir.path(), &stranger), Err(CopyError::Broken(_))));
    }

    #[test]
    fn a_journal_torn_anywhere_gives_the_steps_before_the_tear() {
        let dir = tempfile::tempdir().unwrap();
        let (own, _) = written(dir.path(), 3);
        let path = dir.path().join(JOURNAL);
        let whole = std::fs::read(&path).unwrap();
        for cut in (0..whole.len()).rev() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let seq = read(dir.path(), &own).unwrap().unwrap().book.position().seq;
            assert!((0..3).contains(&seq), "cut at {cut}: {seq}");
        }
        let (first, rest) = split_frame(&whole).unwrap();
        assert!(!first.is_empty());
        std::fs::write(&path, rest).unwrap();
        assert_eq!(read(dir.path(), &own).unwrap().unwrap().book.position().seq, 0);
    }

    #[test]
    fn a_changed_snapshot_is_broken_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let (own, _) = written(dir.path(), 0);
        let path = dir.path().join(SNAPSHOT);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            assert!(matches!(read(dir.path(), &own), Err(CopyError::Broken(_))), "byte {at}");
        }
    }
}
