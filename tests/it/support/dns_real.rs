//! Other people's DNS servers, each with a directory and a port of its own, gone when dropped.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nameplate::dns::wire;
use nameplate::dns::world::line;
use nameplate::env::Env;
use nameplate::model::look::{Data, Kind, Rr, name};
use nameplate::sandbox::dns::{Sockets, ZoneStore};
use tempfile::TempDir;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::services;

/// A zone in the form of a master file.
#[derive(Clone, Debug)]
pub struct MasterFile {
    /// Where it begins.
    pub apex: String,
    /// Its lines.
    pub text: String,
}

/// The zones of a world as a real server loads them; or why it cannot.
pub fn zones(world: &ZoneStore) -> Result<Vec<MasterFile>, String> {
    let all: Vec<Rr> = world.records("").iter().map(|l| line::parse(l).unwrap()).collect();
    for rr in all.iter().filter(|rr| rr.data.kind() == Kind::Cname) {
        if let Some(beside) = all.iter().find(|x| x.name == rr.name && x.data != rr.data) {
            return Err(format!("{} has a CNAME beside {}", rr.name, beside.data.kind()));
        }
    }
    let apexes: Vec<&str> = all.iter().filter(|rr| rr.data.kind() == Kind::Soa).map(|rr| rr.name.as_str()).collect();
    let holder = |owner: &str| apexes.iter().filter(|a| name::within(owner, a)).max_by_key(|a| a.len()).copied();
    let mut files: Vec<MasterFile> =
        apexes.iter().map(|apex| MasterFile { apex: (*apex).to_owned(), text: String::new() }).collect();
    let mut write = |apex: &str, rr: &Rr| {
        let file = files.iter_mut().find(|f| f.apex == apex);
        file.unwrap_or_else(|| panic!("{apex} is no zone")).text.push_str(&line_of(rr));
    };
    let mut delegated: Vec<&str> = Vec::new();
    for rr in &all {
        let apex = holder(&rr.name).ok_or_else(|| format!("{} lies in no zone", rr.name))?;
        write(apex, rr);
        if rr.data.kind() == Kind::Ns && rr.name != apex && !delegated.contains(&rr.name.as_str()) {
            delegated.push(&rr.name);
        }
    }
    // Whoever a name is delegated to serves it, with nothing in it.
    for owner in delegated {
        let mut text = format!("{owner}. 300 IN SOA ns.invalid. host.invalid. 1 7200 900 1209600 300\n");
        all.iter().filter(|rr| rr.name == owner && rr.data.kind() == Kind::Ns).for_each(|rr| text += &format!("{rr}\n"));
        files.push(MasterFile { apex: owner.to_owned(), text });
    }
    Ok(files)
}

/// The root, with nothing in it: what lies in no other zone does not exist.
pub fn root() -> MasterFile {
    let text = ". 300 IN SOA ns.invalid. host.invalid. 1 7200 900 1209600 300\n. 300 IN NS ns.invalid.\n\
                ns.invalid. 300 IN A 192.0.2.250\n";
    MasterFile { apex: String::new(), text: text.to_owned() }
}

/// A line that every server reads: some take letters, digits and hyphens only for what they are.
fn line_of(rr: &Rr) -> String {
    match rr.data.kind() {
        Kind::Cname => format!("{rr}\n").replace(':', "\\:").replace('/', "\\/"),
        _ => format!("{rr}\n"),
    }
}

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    Bind,
    Knot,
}

/// A server that runs.
pub struct RealServer {
    pub at: SocketAddr,
    process: Child,
    pub room: TempDir,
}

impl Drop for RealServer {
    fn drop(&mut self) {
        // Its files go right after it: it need not end in order.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn free_port() -> SocketAddr {
    Sockets::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).await.unwrap().address().unwrap()
}

fn spawn(command: &mut Command, room: &Path) -> Child {
    let log = fs::File::create(room.join("log")).unwrap();
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    command.spawn().unwrap_or_else(|e| panic!("{command:?} does not start: {e}"))
}

/// How often a server is started: somebody may take its port between our look and its start.
const STARTS: usize = 3;

/// Waits until the server answers about every one of these names; `definite`: with an answer from the zone itself.
async fn ready(mut server: RealServer, names: &[&str], definite: bool) -> Result<RealServer, String> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let env = Env::real();
    let deadline = env.now() + Duration::from_secs(20);
    let mut octets = [0; 4096];
    for asked in names {
        let question = wire::query(1, asked, Kind::Soa, false).unwrap();
        loop {
            let log = || fs::read_to_string(server.room.path().join("log")).unwrap_or_default();
            if let Some(status) = server.process.try_wait().unwrap() {
                return Err(format!("the server ended with {status}:\n{}", log()));
            }
            if env.now() > deadline {
                return Err(format!("no answer about {asked} at {} in time:\n{}", server.at, log()));
            }
            let _ = socket.send_to(&question, server.at).await;
            if let Ok(Ok(length)) = timeout(Duration::from_millis(50), socket.recv(&mut octets)).await
                && wire::answer(&octets[..length], 1, asked, Kind::Soa).is_ok_and(|(a, _)| a.definite() || !definite)
            {
                break;
            }
        }
    }
    Ok(server)
}

fn write_zones(room: &Path, zones: &[MasterFile]) -> Vec<(String, String)> {
    zones
        .iter()
        .enumerate()
        .map(|(i, zone)| {
            let file = format!("{i}.zone");
            fs::write(room.join(&file), &zone.text).unwrap();
            (zone.apex.clone(), file)
        })
        .collect()
}

/// Serves zones.
pub async fn serve(product: Product, zones: &[MasterFile]) -> RealServer {
    let names: Vec<&str> = zones.iter().map(|z| z.apex.as_str()).collect();
    let mut why = String::new();
    for _ in 0..STARTS {
        let room = tempfile::tempdir().unwrap();
        let files = write_zones(room.path(), zones);
        let at = free_port().await;
        let process = match product {
            Product::Bind => bind(room.path(), at, &files),
            Product::Knot => knot(room.path(), at, &files),
        };
        match ready(RealServer { at, process, room }, &names, true).await {
            Ok(server) => return server,
            Err(e) => why = e,
        }
    }
    panic!("{product:?} does not serve: {why}");
}

fn bind(room: &Path, at: SocketAddr, files: &[(String, String)]) -> Child {
    let dir = room.display();
    let mut conf = format!(
        "options {{ directory \"{dir}\"; pid-file none; session-keyfile none; lock-file none; recursion no; \
         listen-on port {} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; dnssec-validation no; check-names primary ignore; \
         check-integrity no; notify no; minimal-responses no; }};\ncontrols {{ }};\n",
        at.port()
    );
    for (apex, file) in files {
        conf += &format!("zone \"{apex}.\" {{ type primary; file \"{file}\"; }};\n");
    }
    fs::write(room.join("named.conf"), conf).unwrap();
    let mut command = Command::new(services::named());
    command.args(["-g", "-n", "1", "-c"]).arg(room.join("named.conf"));
    spawn(&mut command, room)
}

fn knot(room: &Path, at: SocketAddr, files: &[(String, String)]) -> Child {
    let dir = room.display();
    let mut conf = format!(
        "server:\n    rundir: \"{dir}\"\n    listen: 127.0.0.1@{}\n    udp-workers: 1\n    tcp-workers: 1\n    \
         background-workers: 1\ndatabase:\n    storage: \"{dir}/db\"\nlog:\n  - target: stderr\n    any: info\ntemplate:\n  - id: \
         default\n    storage: \"{dir}\"\n    zonefile-sync: -1\n    journal-content: none\nzone:\n",
        at.port()
    );
    for (apex, file) in files {
        conf += &format!("  - domain: {apex}.\n    file: \"{file}\"\n");
    }
    fs::create_dir(room.join("db")).unwrap();
    fs::write(room.join("knot.conf"), conf).unwrap();
    let mut command = Command::new(services::knotd());
    command.arg("-c").arg(room.join("knot.conf"));
    spawn(&mut command, room)
}

/// How Unbound is set up.
#[derive(Clone, Copy, Debug)]
pub struct Validating<'a> {
    /// The zone that is validated.
    pub zone: &'a str,
    /// The DS records that vouch for it.
    pub anchor: &'a str,
    /// Whether it says why it fails (RFC 8914).
    pub explains: bool,
}

/// Unbound; everything in `stubs` is asked at `authority`.
pub async fn unbound(authority: SocketAddr, how: Validating<'_>, stubs: &[String]) -> RealServer {
    let mut why = String::new();
    for _ in 0..STARTS {
        // A resolver need not know anything to be up.
        match ready(start_unbound(authority, how, stubs).await, &["platform.example"], false).await {
            Ok(server) => return server,
            Err(e) => why = e,
        }
    }
    panic!("Unbound does not answer: {why}");
}

async fn start_unbound(authority: SocketAddr, how: Validating<'_>, stubs: &[String]) -> RealServer {
    let Validating { zone, anchor, explains } = how;
    let ede = if explains { "yes" } else { "no" };
    let room = tempfile::tempdir().unwrap();
    let dir = room.path().display();
    let at = free_port().await;
    fs::write(room.path().join("anchor"), anchor).unwrap();
    let mut conf = format!(
        "server:\n  directory: \"{dir}\"\n  chroot: \"\"\n  username: \"\"\n  pidfile: \"\"\n  do-daemonize: no\n  use-syslog: \
         no\n  logfile: \"\"\n  interface: 127.0.0.1@{}\n  do-ip6: no\n  num-threads: 1\n  do-not-query-localhost: no\n  ede: {ede}\n  \
         module-config: \"validator iterator\"\n  trust-anchor-file: \"{dir}/anchor\"\n  cache-max-negative-ttl: 0\n  \
         cache-max-ttl: 0\n  local-zone: \"test.\" nodefault\n  local-zone: \"invalid.\" nodefault\n",
        at.port()
    );
    for stub in stubs.iter().filter(|s| s.as_str() != zone) {
        conf += &format!("  domain-insecure: \"{stub}.\"\n");
    }
    for stub in stubs {
        let port = authority.port();
        conf += &format!("stub-zone:\n  name: \"{stub}.\"\n  stub-addr: 127.0.0.1@{port}\n  stub-prime: no\n");
    }
    conf += "remote-control:\n  control-enable: no\n";
    fs::write(room.path().join("unbound.conf"), conf).unwrap();
    let mut command = Command::new(services::unbound());
    command.arg("-d").arg("-c").arg(room.path().join("unbound.conf"));
    let process = spawn(&mut command, room.path());
    RealServer { at, process, room }
}

/// A signed zone, and the DS records that vouch for its key.
pub struct Signed {
    pub zone: MasterFile,
    pub anchor: String,
}

/// Signs a zone with a fresh key; `until` as dnssec-signzone reads it (`now+86400`).
pub fn sign(zone: &MasterFile, from: &str, until: &str) -> Signed {
    try_sign(zone, from, until).unwrap_or_else(|e| panic!("{e}"))
}

/// The same; or why no such zone can be signed.
pub fn try_sign(zone: &MasterFile, from: &str, until: &str) -> Result<Signed, String> {
    let room = tempfile::tempdir().unwrap();
    let apex = &zone.apex;
    let origin = if apex.is_empty() { "." } else { apex };
    fs::write(room.path().join("plain"), &zone.text).unwrap();
    let run = |command: &mut Command| {
        let out = command.current_dir(room.path()).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        if out.status.success() { Ok(()) } else { Err(format!("{command:?}: {}", String::from_utf8_lossy(&out.stderr))) }
    };
    run(Command::new(services::dnssec_keygen()).args(["-q", "-a", "ECDSAP256SHA256", "-f", "KSK", origin]))?;
    run(Command::new(services::dnssec_signzone())
        .args(["-q", "-S", "-z", "-P", "-O", "full", "-s", from, "-e", until, "-o", origin, "-f", "signed", "plain"]))?;
    let text = fs::read_to_string(room.path().join("signed")).unwrap();
    let anchor = fs::read_to_string(room.path().join(format!("dsset-{apex}."))).unwrap();
    Ok(Signed { zone: MasterFile { apex: apex.clone(), text }, anchor })
}

/// Every address that a server of these zones may have.
pub fn server_addresses(world: &ZoneStore) -> Vec<IpAddr> {
    let all: Vec<Rr> = world.records("").iter().map(|l| line::parse(l).unwrap()).collect();
    let is_server = |host: &str| all.iter().any(|rr| rr.data == Data::Ns(host.to_owned()));
    all.iter()
        .filter(|rr| is_server(&rr.name))
        .filter_map(|rr| match rr.data {
            Data::A(a) => Some(IpAddr::V4(a)),
            Data::Aaaa(a) => Some(IpAddr::V6(a)),
            _ => None,
        })
        .collect()
}
