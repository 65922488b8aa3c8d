//! Debian's `pebble` as a child process: a CA written by others, strict, so that our client and our CA cannot share a mistake.
//!
//! It keeps nothing: a restart forgets accounts and orders, and makes a new root. It looks names up at one DNS server and
//! fetches HTTP-01 tokens from one port, both given here. It checks no CAA.

use std::fs;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::process::{Child, Command};

use super::ca::{Authority, AuthorityError};
use crate::env::Env;

/// How pebble is started.
#[derive(Clone)]
pub struct PebbleSettings {
    /// The program; `pebble` is looked for in the `PATH`.
    pub program: PathBuf,
    /// A directory for its configuration, keys and log; a directory of its own is made inside and removed with it.
    pub workdir: PathBuf,
    /// The DNS server it asks.
    pub dns: SocketAddr,
    /// The port at which it fetches HTTP-01 tokens.
    pub http_port: u16,
    /// How many of 100 good nonces it refuses.
    pub nonces_refused: u8,
    /// How long it may take until its directory answers.
    pub patience: Duration,
}

impl PebbleSettings {
    /// The usual: the installed program, 5 % of nonces refused, 20 s to start.
    pub fn new(workdir: &Path, dns: SocketAddr, http_port: u16) -> Self {
        PebbleSettings {
            program: PathBuf::from("pebble"),
            workdir: workdir.to_owned(),
            dns,
            http_port,
            nonces_refused: 5,
            patience: Duration::from_secs(20),
        }
    }
}

/// Pebble could not be started, or does not answer.
#[derive(Debug, thiserror::Error)]
pub enum PebbleError {
    /// No such program.
    #[error("the program {0} is not there; install it with: apt-get install pebble")]
    Missing(PathBuf),
    /// A file, a port or the process itself.
    #[error("cannot {what}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The certificate of its server.
    #[error("cannot make pebble's server certificate")]
    Certificate(#[source] AuthorityError),
    /// Its HTTPS does not answer as it should.
    #[error("pebble does not answer at {url}")]
    Http {
        /// Where it was asked.
        url: String,
        /// Why it failed.
        source: reqwest::Error,
    },
    /// It ended, or its directory did not answer in time.
    #[error("pebble {how}; the end of its log: {log}")]
    NotReady {
        /// What was seen.
        how: String,
        /// Its last lines.
        log: String,
    },
}

/// A running pebble. Dropping it kills the process and removes its files.
pub struct Pebble {
    // First, so that the process is gone before its files are.
    child: Child,
    place: Place,
    client: reqwest::Client,
    directory_url: String,
    management_url: String,
    server_root_pem: String,
}

/// The directory with pebble's files.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir_all(&self.0) {
            tracing::warn!(error = %e, path = %self.0.display(), "cannot remove pebble's files");
        }
    }
}

impl Pebble {
    /// Starts it on free loopback ports and waits until its directory answers.
    pub async fn start(settings: &PebbleSettings, env: &Env) -> Result<Self, PebbleError> {
        let place = Place(settings.workdir.join(format!("pebble-{}", env.draw_hex(6))));
        fs::create_dir_all(&place.0).map_err(failed("make pebble's directory"))?;
        let authority = Authority::generate("Pebble's server").map_err(PebbleError::Certificate)?;
        let (chain, key) = authority.server_identity_pem(&["localhost", "127.0.0.1"]).map_err(PebbleError::Certificate)?;
        let (acme, management) = free_ports().map_err(failed("find free ports for pebble"))?;
        let path = |name: &str| place.0.join(name);
        let config = json!({ "pebble": {
            "listenAddress": format!("127.0.0.1:{acme}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": path("cert.pem"),
            "privateKey": path("key.pem"),
            "httpPort": settings.http_port,
            "tlsPort": settings.http_port,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": false,
        }});
        write(&path("cert.pem"), chain.as_bytes())?;
        write(&path("key.pem"), key.as_bytes())?;
        write(&path("config.json"), config.to_string().as_bytes())?;
        let child = spawn(settings, &place)?;
        let server_root_pem = authority.root_pem();
        let directory_url = format!("https://127.0.0.1:{acme}/dir");
        let client = client(&server_root_pem).map_err(|source| PebbleError::Http { url: directory_url.clone(), source })?;
        let management_url = format!("https://127.0.0.1:{management}");
        let mut pebble = Pebble { child, place, client, directory_url, management_url, server_root_pem };
        pebble.wait_until_it_answers(settings.patience, env).await?;
        Ok(pebble)
    }

    /// Where ACME clients start.
    pub fn directory_url(&self) -> &str {
        &self.directory_url
    }

    /// The root of its own server's certificate; not of what it issues.
    pub fn server_root_pem(&self) -> &str {
        &self.server_root_pem
    }

    /// The root of what it issues, as PEM. The intermediate comes with each chain.
    pub async fn fetch_issuing_root(&self) -> Result<String, PebbleError> {
        self.get(&format!("{}/roots/0", self.management_url)).await
    }

    async fn get(&self, url: &str) -> Result<String, PebbleError> {
        let answer = async { self.client.get(url).send().await?.error_for_status()?.text().await };
        answer.await.map_err(|source| PebbleError::Http { url: url.to_owned(), source })
    }

    async fn wait_until_it_answers(&mut self, patience: Duration, env: &Env) -> Result<(), PebbleError> {
        let deadline = env.now() + patience;
        loop {
            let Err(why) = self.get(&self.directory_url).await else { return Ok(()) };
            if let Some(status) = self.child.try_wait().map_err(failed("see whether pebble runs"))? {
                return Err(self.not_ready(format!("ended with {status} before its directory answered")));
            }
            if env.now() >= deadline {
                return Err(self.not_ready(format!("gave no directory within {patience:?} ({why})")));
            }
            env.sleep(Duration::from_millis(50)).await;
        }
    }

    fn not_ready(&self, how: String) -> PebbleError {
        let log = fs::read_to_string(self.place.0.join("log")).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(5).collect();
        PebbleError::NotReady { how, log: last.into_iter().rev().collect::<Vec<_>>().join(" | ") }
    }
}

fn spawn(settings: &PebbleSettings, place: &Place) -> Result<Child, PebbleError> {
    let log = fs::File::create(place.0.join("log")).map_err(failed("make pebble's log"))?;
    let log_too = log.try_clone().map_err(failed("make pebble's log"))?;
    Command::new(&settings.program)
        .arg("-config")
        .arg(place.0.join("config.json"))
        .arg("-strict")
        .arg("-dnsserver")
        .arg(settings.dns.to_string())
        .env("PEBBLE_WFE_NONCEREJECT", settings.nonces_refused.to_string())
        .env("PEBBLE_VA_NOSLEEP", "1")
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(log_too)
        .kill_on_drop(true)
        .spawn()
        .map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => PebbleError::Missing(settings.program.clone()),
            _ => PebbleError::Io { what: "start pebble", source },
        })
}

/// Trusts nothing but pebble's own server root, and goes through no proxy.
fn client(root_pem: &str) -> Result<reqwest::Client, reqwest::Error> {
    let root = reqwest::Certificate::from_pem(root_pem.as_bytes())?;
    reqwest::Client::builder().tls_certs_only([root]).no_proxy().timeout(Duration::from_secs(5)).build()
}

/// Two ports that are free now. Pebble cannot be handed bound sockets; one taken in between shows as an early end.
fn free_ports() -> io::Result<(u16, u16)> {
    let (a, b) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    Ok((a.local_addr()?.port(), b.local_addr()?.port()))
}

fn write(path: &Path, content: &[u8]) -> Result<(), PebbleError> {
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut f| f.write_all(content)).map_err(failed("write pebble's files"))
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> PebbleError {
    move |source| PebbleError::Io { what, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(workdir: &Path) -> PebbleSettings {
        PebbleSettings::new(workdir, SocketAddr::from(([127, 0, 0, 1], 9)), 5002)
    }

    #[tokio::test]
    async fn pebble_starts_tells_its_root_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::real();
        let pebble = Pebble::start(&settings(dir.path()), &env).await.unwrap();
        let root = pebble.fetch_issuing_root().await.unwrap();
        assert!(root.starts_with("-----BEGIN CERTIFICATE-----"), "{root}");
        assert_ne!(root, pebble.server_root_pem());
        let directory: serde_json::Value = serde_json::from_str(&pebble.get(pebble.directory_url()).await.unwrap()).unwrap();
        assert!(directory["newOrder"].as_str().unwrap().starts_with("https://"), "{directory}");
        let address: SocketAddr = pebble.directory_url().split('/').nth(2).unwrap().parse().unwrap();
        drop(pebble);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let deadline = env.now() + Duration::from_secs(10);
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            assert!(env.now() < deadline, "pebble still listens at {address}");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_missing_program_names_the_package_to_install() {
        let dir = tempfile::tempdir().unwrap();
        let settings = PebbleSettings { program: dir.path().join("no-pebble"), ..settings(dir.path()) };
        let refusal = Pebble::start(&settings, &Env::real()).await.err().unwrap().to_string();
        assert!(refusal.contains("apt-get install pebble"), "{refusal}");
    }

    #[tokio::test]
    async fn a_pebble_that_ends_at_once_is_told_with_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let settings = PebbleSettings { program: PathBuf::from("false"), ..settings(dir.path()) };
        let refusal = Pebble::start(&settings, &Env::real()).await.err().unwrap().to_string();
        assert!(refusal.contains("ended with exit status: 1"), "{refusal}");
    }
}
