//! Where a sandbox keeps its files: a directory given, or one of its own that goes with it.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::env::Env;
use crate::vault::{MasterKey, MasterKeyError};

/// The files could not be made.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// The disk said no.
    #[error("could not {act} {path}")]
    Disk {
        /// What was tried.
        act: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The master key.
    #[error("the sandbox's master key could not be made")]
    MasterKey(#[from] MasterKeyError),
}

/// A directory that only its owner may enter.
pub struct Home {
    dir: PathBuf,
    fleeting: bool,
}

impl Home {
    /// The directory given, made where it is missing; without one, a fresh one that is removed in the end.
    pub fn open(data: Option<&Path>, env: &Env) -> Result<Home, HomeError> {
        let fleeting = data.is_none();
        let dir = match data {
            Some(dir) => std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned()),
            None => std::env::temp_dir().join(format!("nameplate-sandbox-{}", env.draw_hex(6))),
        };
        let made = fs::DirBuilder::new().recursive(!fleeting).mode(0o700).create(&dir);
        made.map_err(|source| HomeError::Disk { act: "make", path: dir.clone(), source })?;
        Ok(Home { dir, fleeting })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The file of the master key, made at the first start.
    pub fn master_key(&self, env: &Env) -> Result<PathBuf, HomeError> {
        let path = self.path("master.key");
        if !path.exists() {
            MasterKey::generate(1, env).write_new(&path)?;
        }
        Ok(path)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, HomeError> {
        let path = self.path(name);
        fs::write(&path, text).map_err(|source| HomeError::Disk { act: "write", path: path.clone(), source })?;
        Ok(path)
    }

    /// Reads a file, if it is there.
    pub fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    /// Adds a root to the file of those that visitors trust: a CA that starts again has a new one, and what its forerunner
    /// issued is still served.
    pub fn add_root(&self, name: &str, pem: &str) -> Result<PathBuf, HomeError> {
        let before = self.read(name).unwrap_or_default();
        self.write(name, &format!("{pem}{before}"))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.fleeting
            && let Err(error) = fs::remove_dir_all(&self.dir)
        {
            tracing::warn!(%error, path = %self.dir.display(), "the sandbox's files could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_of_its_own_goes_and_a_given_one_stays_with_its_key() {
        let env = Env::real();
        let dir = {
            let home = Home::open(None, &env).unwrap();
            home.master_key(&env).unwrap();
            home.dir().to_owned()
        };
        assert!(!dir.exists());
        let kept = tempfile::tempdir().unwrap();
        let key = |home: Home| fs::read(home.master_key(&env).unwrap()).unwrap();
        let first = key(Home::open(Some(kept.path()), &env).unwrap());
        assert_eq!(key(Home::open(Some(kept.path()), &env).unwrap()), first);
    }
}
