//! Several processes of the real binary on one database, the world around them, and edges that outlive them all.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nameplate::app::tenants::{self, NewTenant};
use nameplate::app::tokens::{self, Principal};
use nameplate::config::{Config, Role, Sources};
use nameplate::edge::EdgeListeners;
use nameplate::env::Env;
use nameplate::model::secret::Secret;
use nameplate::roles::{ControlPlane, EDGE_DRAIN, run_edge};
use nameplate::sandbox::ca::TestCa;
use nameplate::sandbox::config::{Places, text};
use nameplate::sandbox::home::Home;
use nameplate::sandbox::issuer::{Choice, Issuer};
use nameplate::sandbox::outside::{Outside, OutsidePorts};
use nameplate::sandbox::ports::Ports;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::cluster::lasting_port;

/// How long a request to a process may take: longer than the process itself waits for its database.
const PATIENCE: Duration = Duration::from_secs(15);

/// One process of the binary, through all its lives.
pub struct Process {
    role: &'static str,
    variables: Vec<(&'static str, String)>,
    /// Where its API is, for `serve`.
    pub web: SocketAddr,
    watch: SocketAddr,
    log: PathBuf,
    child: Child,
}

impl Process {
    /// The id of its present life.
    pub fn id(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Whether it has ended without being killed.
    pub fn ended(&mut self) -> Option<String> {
        self.child.try_wait().unwrap().map(|status| format!("{} {}: {status}", self.role, self.watch))
    }
}

/// What a process said to a request.
pub enum Said {
    /// It did what it was asked.
    Done(Value),
    /// It is not there, or went away in the middle of it.
    Away,
    /// Its database is not there, and it said so: the same can be asked again.
    Refused,
    /// It said that the same was asked a moment ago.
    TooSoon,
}

/// The processes and what is around them.
pub struct Fleet {
    pub outside: Outside,
    /// The ports 443 of the edges.
    pub edges: Vec<SocketAddr>,
    /// The database's URL.
    pub url: String,
    /// What its world is configured by.
    config_file: PathBuf,
    token: Secret,
    client: Client,
    dir: TempDir,
    _edges: Vec<DropGuard>,
}

impl Fleet {
    /// A world with these tenants, on this database, and two edges that follow one `serve` each; no process runs yet.
    /// `adapt` rewrites the configuration's text.
    pub async fn new(url: String, tenants: &[String], adapt: impl Fn(String) -> String, env: &Env) -> (Fleet, [Process; 4]) {
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let (env, dir) = (env.clone(), tempfile::tempdir().unwrap());
        let home = Home::open(Some(dir.path()), &env).unwrap();
        let ports = Ports::free().await.unwrap();
        let at = |listener: &tokio::net::TcpListener| listener.local_addr().unwrap();
        let (plain, tls) = (at(&ports.plain), at(&ports.tls));
        drop((ports.web, ports.feed));
        let outside_ports = OutsidePorts {
            provider: ports.provider,
            origin: ports.origin,
            ca: ports.ca,
            mail: ports.mail,
            edge_plain: plain.port(),
        };
        let outside = Outside::start(outside_ports, &Choice::Test, dir.path(), &env).await.unwrap();
        let process = |role, n: usize| {
            let port = || SocketAddr::from(([127, 0, 0, 1], lasting_port(&env)));
            (role, port(), port(), port(), home.path(&format!("{role}-{n}.log")))
        };
        let all = [process("serve", 1), process("serve", 2), process("work", 1), process("work", 2)];
        let places = Places {
            database: url.clone(),
            master_key: &home.master_key(&env).unwrap(),
            ca_roots: &home.write("acme-root.pem", outside.issuer.directory_root()).unwrap(),
            directory: outside.issuer.directory("processes"),
            web: all[0].1,
            feed: all[0].2,
            plain,
            tls,
            edge_state: &home.path("edge-1"),
        };
        let text = adapt(text(&places, &outside));
        let config_file = home.write("nameplate.toml", &text).unwrap();
        let config = Config::read(Sources::none().file("nameplate.toml", text)).unwrap();

        let control = ControlPlane::open(&config, Role::Serve, &env).await.unwrap();
        for slug in tenants {
            let host = |slug: &_| config.canonical_host(slug);
            let new = NewTenant { slug, name: None };
            tenants::add(control.store(), &env, new, host, "test").await.unwrap();
        }
        let token = tokens::mint(control.store(), &env, &Principal::Operator, "test", None).await.unwrap().text;
        let mut edges = vec![(ports.plain, ports.tls)];
        edges.push((bound().await, bound().await));
        let mut ends = Vec::new();
        let mut at_443 = Vec::new();
        for (n, (plain, tls)) in edges.into_iter().enumerate() {
            let feed = all[n].2;
            let mut config = config.clone();
            let (follows, name) = (format!("https://{feed}"), format!("edge-{n}"));
            config.edge.name = Some(name.clone());
            config.edge.state_dir = home.path(&name);
            let join = control.feed().mint_join_token(&follows, &name, PATIENCE * 8).await.unwrap();
            config.edge.join_token = Some(join);
            at_443.push(at(&tls));
            let (env, stop) = (env.clone(), CancellationToken::new());
            ends.push(stop.clone().drop_guard());
            let listeners = EdgeListeners { plain, tls };
            tokio::spawn(async move { run_edge(&config, &env, Some(listeners), EDGE_DRAIN, stop).await.unwrap() });
        }
        control.store().close().await;

        let client = Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        let fleet = Fleet { outside, edges: at_443, url, config_file, token, client, dir, _edges: ends };
        let processes = all.map(|(role, web, feed, watch, log)| {
            let variables = vec![
                ("NAMEPLATE__SERVER__LISTEN", web.to_string()),
                ("NAMEPLATE__FEED__LISTEN", feed.to_string()),
                ("NAMEPLATE__METRICS__LISTEN", watch.to_string()),
            ];
            let child = fleet.spawn(role, &variables, &log);
            Process { role, variables, web, watch, log, child }
        });
        (fleet, processes)
    }

    /// Where its files are.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// What the processes are configured by.
    pub fn config(&self) -> String {
        fs::read_to_string(&self.config_file).unwrap()
    }

    /// The test CA.
    pub fn ca(&self) -> &TestCa {
        let Issuer::Test(ca, _) = &self.outside.issuer else { panic!("the CA is the test's own") };
        ca
    }

    fn spawn(&self, role: &str, variables: &[(&'static str, String)], log: &PathBuf) -> Child {
        let log = File::options().create(true).append(true).open(log).unwrap();
        Command::new(env!("CARGO_BIN_EXE_nameplate"))
            .args([role, "--config"])
            .arg(&self.config_file)
            .envs(variables.iter().map(|(name, value)| (*name, value.as_str())))
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    /// SIGKILL, and at once the next life.
    pub async fn kill(&self, process: &mut Process) {
        process.child.kill().await.unwrap();
        process.child = self.spawn(process.role, &process.variables, &process.log);
    }

    /// What a process says of itself to those who watch it: whether it can work, and else why not.
    pub async fn ready(&self, process: &Process) -> Result<(), String> {
        let asked = self.client.get(format!("http://{}/readyz", process.watch)).send().await;
        let answer = asked.map_err(|e| e.to_string())?;
        let ready = answer.status() == StatusCode::OK;
        let said = answer.text().await.map_err(|e| e.to_string())?;
        if ready { Ok(()) } else { Err(said) }
    }

    /// Asks the API of `process`. Whatever it is killed by, stopped by or waits for, it answers in one of few ways.
    pub async fn ask(&self, process: SocketAddr, method: Method, path: &str, body: Option<&Value>) -> Said {
        let mut request = self.client.request(method, format!("http://{process}{path}"));
        if let Some(body) = body {
            request = request.json(body);
        }
        self.send(request).await
    }

    /// A request to `process` that is not of JSON.
    pub fn request(&self, process: SocketAddr, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("http://{process}{path}"))
    }

    /// Sends it.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Said {
        let sent = request.bearer_auth(self.token.expose_str().unwrap()).send().await;
        let Ok(answer) = sent else { return Said::Away };
        let (status, headers) = (answer.status(), answer.headers().clone());
        let Ok(body) = answer.text().await else { return Said::Away };
        let json = || serde_json::from_str::<Value>(&body).unwrap_or_else(|_| Value::String(body.clone()));
        match status {
            status if status.is_success() => Said::Done(json()),
            StatusCode::SERVICE_UNAVAILABLE => {
                assert!(headers.contains_key(RETRY_AFTER), "a 503 says when to come back: {body}");
                assert_eq!(headers[CONTENT_TYPE], "application/problem+json", "{body}");
                assert_eq!(json()["code"], "store_unavailable", "{body}");
                Said::Refused
            }
            StatusCode::TOO_MANY_REQUESTS if json()["code"] == "too_soon" => Said::TooSoon,
            other => panic!("the API answered {other}: {body}"),
        }
    }

    /// A process's log, of all its lives.
    pub fn log(&self, process: &Process) -> String {
        fs::read_to_string(&process.log).unwrap_or_default()
    }

    /// Its end.
    pub fn log_end(&self, process: &Process) -> String {
        let log = self.log(process);
        let last: Vec<&str> = log.lines().rev().take(40).collect();
        last.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

async fn bound() -> tokio::net::TcpListener {
    tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap()
}
