//! `nameplate backup` and `nameplate restore`, as whoever runs them sees them, on both kinds of database.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use nameplate::app::restore;
use nameplate::env::Env;
use nameplate::mint;
use nameplate::model::id::TenantId;
use nameplate::store::{OpenSettings, Store, sql};

use crate::support::services::postgres_bin;
use crate::support::stores::{Kind, TestStore};

/// A machine with the binary: a directory, and where its databases are.
struct Machine {
    dir: tempfile::TempDir,
    kind: Kind,
    made: Vec<TestStore>,
}

/// An address in the environment of a command.
type Url = String;

impl Machine {
    fn new(kind: Kind) -> Machine {
        Machine { dir: tempfile::tempdir().unwrap(), kind, made: Vec::new() }
    }

    /// A place for a database, with nothing in it.
    async fn place(&mut self) -> Url {
        if self.kind == Kind::Postgres {
            let test = TestStore::blank(Kind::Postgres).await;
            let url = test.url.clone();
            self.made.push(test);
            return url;
        }
        self.made.push(TestStore::blank(Kind::SqliteMemory).await);
        format!("sqlite:{}", self.path(&format!("{}.db", self.made.len())).display())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run(&self, line: &str, url: &str, key: &str) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nameplate"));
        command.args(line.split_whitespace()).env_clear().current_dir(self.dir.path());
        command.env("NAMEPLATE__VAULT__MASTER_KEY", key.repeat(32)).env("NAMEPLATE__FEED__URL", "https://feed.example");
        command.env("NAMEPLATE__DATABASE__URL", url);
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    }

    fn done(&self, line: &str, url: &str) -> String {
        let (code, said) = self.run(line, url, "07");
        assert_eq!(code, Some(0), "{line}: {said}");
        said
    }

    fn refused(&self, line: &str, url: &str, key: &str, words: &[&str]) {
        let (code, said) = self.run(line, url, key);
        assert_eq!(code, Some(1), "{line}: {said}");
        for word in words {
            assert!(said.contains(word), "{line}: {word:?} is not in {said}");
        }
    }

    /// Nothing was put there, whole or in part.
    async fn is_empty(&self, url: &str) {
        match url.strip_prefix("sqlite:") {
            Some(file) => {
                let name = Path::new(file).file_name().unwrap().to_str().unwrap().to_owned();
                let left: Vec<_> = fs::read_dir(self.dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
                assert!(!left.iter().any(|n| n.to_str().unwrap().starts_with(&name)), "{left:?}");
            }
            None => {
                let store = open(url).await;
                assert!(nameplate::store::dump::empty(&store).await.unwrap().is_some(), "something is in {url}");
                store.close().await;
            }
        }
    }

    async fn end(self) {
        for test in self.made {
            test.remove().await;
        }
    }
}

async fn open(url: &str) -> Store {
    Store::open(&OpenSettings { url: url.to_owned(), connections: 2 }).await.unwrap()
}

async fn count(store: &Store, text: &'static str) -> i64 {
    store.query(sql(text)).await.unwrap()[0].int("n").unwrap()
}

/// Two tenants in one transaction, over and over: a copy has both or neither.
async fn write_pairs(store: &Store, written: &AtomicBool) {
    let env = Env::real();
    for n in 0.. {
        let mut tx = store.begin().await.unwrap();
        for half in ["a", "b"] {
            let insert =
                sql("INSERT INTO tenants (id, slug, name, status, region, stamp, shard, tier, version, created_at) \
                 VALUES ($1, $2, 'x', 'active', 'eu', 'a', 0, 'usual', 1, $3)");
            let id = mint!(env, TenantId);
            tx.execute(insert.bind(id.as_str()).bind(format!("{half}{n}")).bind(env.now())).await.unwrap();
        }
        tx.commit().await.unwrap();
        written.store(true, Ordering::Relaxed);
    }
}

const TENANTS: &str = "SELECT count(*) AS n FROM tenants";

async fn story(kind: Kind) {
    let mut m = Machine::new(kind);
    let first = m.place().await;
    m.done("migrate", &first);
    m.done("token create --edge", &first);
    let store = open(&first).await;
    let bin = postgres_bin();
    let (backup, restore) = match kind {
        Kind::Postgres => (format!("backup --programs {}", bin.display()), format!("restore --programs {}", bin.display())),
        _ => ("backup".to_owned(), "restore".to_owned()),
    };
    // Copied while it is written to.
    let writing = AtomicBool::new(false);
    let copied = async {
        while !writing.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
        }
        let before = count(&store, TENANTS).await;
        tokio::task::block_in_place(|| m.done(&format!("{backup} copy"), &first));
        before
    };
    let before = tokio::select! { before = copied => before, () = write_pairs(&store, &writing) => unreachable!() };
    assert_eq!(fs::metadata(m.path("copy")).unwrap().permissions().mode() & 0o777, 0o600);
    m.refused(&format!("{backup} copy"), &first, "07", &["is there already", "another name"]);

    // Where something is, nothing is put back.
    m.refused(&format!("{restore} copy"), &first, "07", &["nothing was put back", "never overwrites"]);
    // Under another master key, cut off, of the other kind or no copy at all: said, and nothing is left.
    let second = m.place().await;
    m.refused(&format!("{restore} copy"), &second, "08", &["opens nothing of this database's vault"]);
    m.is_empty(&second).await;
    let whole = fs::read(m.path("copy")).unwrap();
    for part in [whole.len() / 3, whole.len() * 2 / 3, whole.len() - 1] {
        fs::write(m.path("cut"), &whole[..part]).unwrap();
        let (code, said) = m.run(&format!("{restore} cut"), &second, "07");
        assert!(code == Some(1) && (said.contains("cut off") || said.contains("nothing was put back")), "{part}: {said}");
        m.is_empty(&second).await;
    }
    let other = if kind == Kind::Postgres { "sqlite:other.db" } else { "postgres://127.0.0.1:1/other" };
    m.refused(&format!("{restore} copy"), other, "07", &["goes back into the kind it came from"]);
    fs::write(m.path("text"), "no copy").unwrap();
    m.refused(&format!("{restore} text"), &second, "07", &["is no copy"]);
    m.refused(&format!("{restore} absent"), &second, "07", &["cannot be used"]);
    m.is_empty(&second).await;

    // Put back, and declared in one go.
    let said = m.done(&format!("{restore} copy"), &second);
    assert!(said.contains("Put back copy") && said.contains("A new epoch") && said.contains("restored --end"), "{said}");
    if let Some(file) = second.strip_prefix("sqlite:") {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let back = open(&second).await;
    let tenants = count(&back, TENANTS).await;
    assert!(tenants >= before && tenants % 2 == 0, "{tenants} of {before} and more");
    let epoch = count(&back, "SELECT epoch AS n FROM feed").await;
    assert!(epoch > count(&store, "SELECT epoch AS n FROM feed").await);
    assert!(restore::status(&back).await.unwrap().is_some(), "it recovers");
    // Twice is harmless.
    m.refused(&format!("{restore} copy"), &second, "07", &["nothing was put back"]);
    assert_eq!((count(&back, TENANTS).await, count(&back, "SELECT epoch AS n FROM feed").await), (tenants, epoch));
    m.done("restored --end", &second);
    back.close().await;
    store.close().await;
    m.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_goes_back_whole_or_not_at_all() {
    story(Kind::SqliteFile).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_goes_back_whole_or_not_at_all_on_postgres() {
    story(Kind::Postgres).await;
}

/// Programs of one's own, which do what a script says.
fn scripts(m: &Machine, text: &str) -> String {
    let dir = m.path("programs");
    fs::create_dir_all(&dir).unwrap();
    for program in ["pg_dump", "pg_restore"] {
        let path = dir.join(program);
        fs::write(
            &path,
            format!("#!/bin/sh\n{text}\n").replace("PROGRAM", &postgres_bin().join(program).display().to_string()),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    }
    dir.display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresqls_programs_are_told_no_secret_by_arguments_and_what_is_wrong_with_them_is_said() {
    let mut m = Machine::new(Kind::Postgres);
    let (url, again) = (m.place().await, m.place().await);
    m.done("migrate", &url);
    m.done("token create --edge", &url);
    let noted = m.path("noted");
    let dir = scripts(
        &m,
        &format!("echo \"$@\" >> {0}\necho \"${{PGPASSWORD:+told}}\" >> {0}.env\nexec PROGRAM \"$@\"", noted.display()),
    );
    m.done(&format!("backup --programs {dir} copy"), &url);
    m.done(&format!("restore --programs {dir} copy"), &again);
    let said = fs::read_to_string(&noted).unwrap();
    let password = url.split_once("://").unwrap().1.split_once('@').unwrap().0.split_once(':').unwrap().1;
    assert!(said.lines().count() >= 4 && !said.contains(password) && !said.contains("://"), "{said}");
    let told = fs::read_to_string(m.path("noted.env")).unwrap();
    assert!(told.lines().all(|line| line == "told"), "{told}");

    m.refused("backup --programs nowhere copy-2", &url, "07", &["pg_dump is not here", "postgresql-client", "--programs"]);
    let dir = scripts(&m, "echo 'pg_dump: error: aborting because of server version mismatch' >&2\nexit 1");
    m.refused(
        &format!("backup --programs {dir} copy-2"),
        &url,
        "07",
        &["is older than the server", "postgresql-client-VERSION"],
    );
    // What was begun and broke off is not taken for a copy.
    let dir = scripts(&m, "echo PGDMP\necho 'out of luck' >&2\nexit 1");
    m.refused(&format!("backup --programs {dir} copy-2"), &url, "07", &["could not be written", "out of luck"]);
    assert!(!m.path("copy-2").exists());
    m.end().await;
}
