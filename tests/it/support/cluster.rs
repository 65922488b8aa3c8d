//! A PostgreSQL server of a test's own, to be stopped, started again, cut off and made read-only.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nameplate::env::Env;
use sqlx::{Connection as _, Executor as _, PgConnection};
use tempfile::TempDir;

use super::services::postgres_bin;

/// Ports below the range from which the kernel takes those of outgoing connections: nobody has one while its server is away.
pub fn lasting_port(env: &Env) -> u16 {
    loop {
        let port = 20_000 + u16::from_be_bytes(env.draw()) % 12_000;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// The server; its end is the end of this.
pub struct Cluster {
    bin: PathBuf,
    room: TempDir,
    port: u16,
}

impl Cluster {
    /// Makes and starts it.
    pub async fn start(env: &Env) -> Cluster {
        let room = tempfile::tempdir().unwrap();
        let cluster = Cluster { bin: postgres_bin(), room, port: lasting_port(env) };
        if cluster.as_root() {
            // PostgreSQL refuses to run as root: there it runs under the account its package made.
            std::fs::set_permissions(cluster.room.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
            done(Command::new("install").args(["-d", "-o", "postgres", "-m", "700"]).arg(cluster.home()), "install");
        }
        let data = cluster.data();
        let made = ["--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "-U", "postgres", "-D"];
        done(cluster.program("initdb").args(made).arg(&data), "initdb");
        cluster.again().await;
        cluster
    }

    fn home(&self) -> PathBuf {
        self.room.path().join("home")
    }

    fn data(&self) -> PathBuf {
        self.home().join("data")
    }

    fn as_root(&self) -> bool {
        self.room.path().metadata().unwrap().uid() == 0
    }

    fn program(&self, name: &str) -> Command {
        let path = self.bin.join(name);
        let mut command = if self.as_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--no-new-privs", "--"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        command.stdin(Stdio::null()).current_dir(Path::new("/"));
        command
    }

    /// Its superuser's URL.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Starts it after a stop. What is committed survives a stop of its processes, without a sync of the disk.
    pub async fn again(&self) {
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off -c full_page_writes=off \
             -c shared_buffers=64MB -c max_connections=100",
            self.port
        );
        let mut start = self.program("pg_ctl");
        start.args(["start", "-w", "-D"]).arg(self.data()).arg("-l").arg(self.home().join("log")).arg("-o").arg(options);
        tokio::task::spawn_blocking(move || done(&mut start, "pg_ctl start")).await.unwrap();
    }

    /// Stops it: `fast` ends its sessions and closes its files, `immediate` is a crash of all its processes.
    pub async fn stop(&self, how: &str) {
        let mut stop = self.stopping(how);
        tokio::task::spawn_blocking(move || done(&mut stop, "pg_ctl stop")).await.unwrap();
    }

    fn stopping(&self, how: &str) -> Command {
        let mut stop = self.program("pg_ctl");
        stop.args(["stop", "-w", "-m", how, "-D"]).arg(self.data());
        stop
    }

    /// Makes it refuse every write, as a standby does, or take them again.
    pub async fn read_only(&self, on: bool) {
        let mut admin = PgConnection::connect(&self.url()).await.unwrap();
        let word = if on {
            "ALTER SYSTEM SET default_transaction_read_only = on"
        } else {
            "ALTER SYSTEM SET default_transaction_read_only = off"
        };
        admin.execute(word).await.unwrap();
        admin.execute("SELECT pg_reload_conf()").await.unwrap();
    }

    /// Cuts every connection, as a firewall does.
    pub async fn cut(&self) {
        let mut admin = PgConnection::connect(&self.url()).await.unwrap();
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        admin.execute(cut).await.unwrap();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may be stopped already, by a test that failed meanwhile.
        let _ = self.stopping("immediate").stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Runs a program that must succeed. A server that it leaves behind must not hold our pipes.
fn done(command: &mut Command, what: &str) {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(status.success(), "{what} failed: {status}");
}
