//! The command line, as the binary that people run.

use std::path::Path;
use std::process::{Command, Output};

use nameplate::env::Env;
use nameplate::model::id::EdgeId;
use nameplate::model::moment::Moment;
use nameplate::store::{OpenSettings, Store, edges};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::web::Web;

/// The binary in a directory of its own, with nothing of this process's environment.
struct Shell {
    home: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Shell {
    fn new() -> Self {
        Shell {
            home: tempfile::tempdir().unwrap(),
            variables: vec![("NAMEPLATE__ROUTING__CANONICAL_SUFFIX", "app.example".into())],
        }
    }

    fn run(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nameplate"));
        command.args(line.split_whitespace()).env_clear().current_dir(self.home.path());
        command.envs(self.variables.iter().map(|(k, v)| (*k, v.as_str()))).output().unwrap()
    }

    /// Standard output of a command that works.
    #[track_caller]
    fn out(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Exit code and standard error of one that does not.
    #[track_caller]
    fn fails(&self, line: &str) -> (i32, String) {
        let output = self.run(line);
        assert!(!output.status.success(), "{line}");
        assert!(output.stdout.is_empty(), "{line}: {}", String::from_utf8_lossy(&output.stdout));
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    fn path(&self) -> &Path {
        self.home.path()
    }
}

#[test]
fn tenants_and_tokens_are_made_without_a_server() {
    let shell = Shell::new();
    shell.out("migrate");
    assert!(shell.out("tenant add acme --name Acme").starts_with("Added acme as ten_"));
    let listed: Value = serde_json::from_str(&shell.out("tenant list --json")).unwrap();
    assert_eq!((&listed[0]["slug"], &listed[0]["status"]), (&"acme".into(), &"active".into()));
    assert_eq!(listed[0]["canonical_host"], "acme.app.example");
    let at = listed[0]["created_at"].as_str().unwrap();
    assert!(at.len() == 20 && at.ends_with('Z'), "{at}");
    let table = shell.out("tenant list");
    assert!(table.starts_with("SLUG") && table.lines().count() == 2, "{table}");

    let operator = shell.out("token create --operator");
    assert!(operator.starts_with("npo_") && operator.trim().len() == 47, "{operator}");
    let tenant: Value = serde_json::from_str(&shell.out("token create --tenant acme --expires 90d --json")).unwrap();
    assert!(tenant["token"].as_str().unwrap().starts_with("npt_"));
    let revoke = format!("token revoke {}", tenant["id"].as_str().unwrap());
    shell.out(&revoke);
    let (code, said) = shell.fails(&revoke);
    assert!(code == 1 && said.contains("was taken back before, at 20"), "{said}");
    let (_, said) = shell.fails("token revoke tok_00000000000000000000000000000000");
    assert!(said.contains("there is no token tok_0") && said.contains("nameplate token list"), "{said}");
    let tokens: Value = serde_json::from_str(&shell.out("token list --json")).unwrap();
    assert_eq!(tokens.as_array().unwrap().len(), 2);
    assert!(tokens[1]["revoked_at"].is_string() && tokens[0]["expires_at"].is_null());
    assert!(!tokens.to_string().contains(operator.trim()));
    assert!(shell.out("token list --tenant acme").contains("taken back 20"));
    assert_eq!(shell.fails("token create --operator --expires 0s").0, 1);

    let (code, said) = shell.fails("tenant add ACME");
    assert_eq!(code, 1);
    assert!(said.contains("\"acme\" is or was in use"), "{said}");
    assert!(shell.fails("tenant add admin").1.contains("reserved"));
    assert!(shell.fails("token create --tenant nobody").1.contains("nameplate tenant add nobody"));
    assert!(shell.fails("token create --operator --expires soon").1.contains("is not a time like"));
}

#[test]
fn edges_are_let_in_by_a_token_and_administered_without_a_server() {
    let mut shell = Shell::new();
    shell.out("migrate");
    assert!(shell.fails("token create --edge").1.contains("feed.url is missing"));
    shell.variables.push(("NAMEPLATE__FEED__URL", "https://feed.example:8443".into()));
    assert!(shell.fails("token create --edge").1.contains("vault.master_key"));
    shell.variables.push(("NAMEPLATE__VAULT__MASTER_KEY", "07".repeat(32)));
    let token = shell.out("token create --edge --label rack-1");
    let read = nameplate::feed::join::JoinToken::from_text(token.trim()).unwrap();
    assert_eq!(read.url, "https://feed.example:8443");
    assert_eq!(shell.out("edge list --json").trim(), "[]");
    assert!(shell.out("edge list").starts_with("NAME"));
    assert!(shell.fails("edge drain rack-1").1.contains("there is no edge \"rack-1\""));
    assert!(shell.fails("edge revoke rack-1").1.contains("there is no edge \"rack-1\""));
    assert!(shell.fails("token create --edge --expires 0s").1.contains("has ended before it is used"));
    // Another master key than the one that sealed the feed's keys is noticed before anything is made under it.
    shell.variables.pop();
    shell.variables.push(("NAMEPLATE__VAULT__MASTER_KEY", "08".repeat(32)));
    let (code, said) = shell.fails("token create --edge");
    assert_eq!(code, 1);
    assert!(said.contains("opens nothing of this database's vault") && !said.contains("0808"), "{said}");
}

#[tokio::test]
async fn an_edge_is_drained_and_then_shut_out_for_ever() {
    let mut shell = Shell::new();
    shell.variables.push(("NAMEPLATE__VAULT__MASTER_KEY", "07".repeat(32)));
    shell.out("migrate");
    let url = format!("sqlite:{}", shell.path().join("nameplate.db").display());
    let store = Store::open(&OpenSettings { url, connections: 1 }).await.unwrap();
    let id = EdgeId::mint(Moment::from_secs(1_800_000_000), [7; 10]);
    store.execute(edges::insert(&id, "rack-1", &[1; 32], &[2; 32], Moment::from_secs(1_800_000_000))).await.unwrap();
    store.close().await;
    assert!(
        shell.out("edge list").contains("rack-1  active  0    -      2027-01-15T08:00:00Z"),
        "{}",
        shell.out("edge list")
    );
    assert_eq!(shell.out("edge drain rack-1"), "rack-1 counts no more and can be taken down.\n");
    assert_eq!(shell.out("edge undrain rack-1"), "rack-1 counts again once it is heard of.\n");
    let drained: Value = serde_json::from_str(&shell.out("edge drain rack-1 --json")).unwrap();
    let listed: Value = serde_json::from_str(&shell.out("edge list --json")).unwrap();
    assert_eq!(drained, listed[0], "one document for one edge");
    assert_eq!((&listed[0]["counted"], &listed[0]["heartbeat_at"]), (&false.into(), &"2027-01-15T08:00:00Z".into()));
    assert_eq!((&listed[0]["status"], &listed[0]["id"]), (&"drained".into(), &id.as_str().into()));
    assert!(shell.out(&format!("edge revoke {id}")).contains("shut out for ever"));
    // Its name is free for another; the id stays what it was.
    assert!(shell.fails(&format!("edge revoke {id}")).1.contains("revoked already"));
    let (_, said) = shell.fails("edge revoke rack-1");
    assert!(said.contains("the edge rack-1 is revoked already") && said.contains(id.as_str()), "{said}");
    assert!(shell.fails(&format!("edge drain {id}")).1.contains("revoked and stays so"));
}

#[test]
fn completions_and_manual_pages_are_made_from_the_grammar() {
    let shell = Shell::new();
    for (name, sign) in [("bash", "complete -F"), ("zsh", "#compdef nameplate"), ("fish", "complete -c nameplate")] {
        let text = shell.out(&format!("completions {name}"));
        assert!(text.contains(sign) && text.contains("sandbox") && text.contains("undrain"), "{name}");
    }
    for name in ["elvish", "powershell"] {
        assert!(shell.out(&format!("completions {name}")).contains("nameplate"), "{name}");
    }
    assert_eq!(shell.fails("completions tcsh").0, 2);
    let page = shell.out("man");
    assert!(page.contains(".TH nameplate 1") && page.contains("completions"), "{page}");
    assert!(shell.out("man --dir pages").contains("pages"));
    let mut names: Vec<_> = std::fs::read_dir(shell.path().join("pages"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    for expected in ["nameplate.1", "nameplate-domain-add.1", "nameplate-edge-undrain.1", "nameplate-serve.1"] {
        assert!(names.iter().any(|name| name == expected), "{names:?}");
    }
    assert!(!shell.path().join("nameplate.db").exists(), "nothing else is touched");
}

#[test]
fn exit_codes_tell_misuse_from_failure() {
    let shell = Shell::new();
    for misuse in [
        "",
        "tenant",
        "token create",
        "token create --operator --tenant acme",
        "frobnicate",
        "domain show",
        "sandbox --check --repeat 0",
    ] {
        assert_eq!(shell.fails(misuse).0, 2, "{misuse:?}");
    }
    assert!(shell.out("--help").contains("Usage: nameplate"));
    assert!(shell.out("--version").starts_with("nameplate "));
    let (code, said) = shell.fails("domain list");
    assert_eq!(code, 1);
    assert!(said.contains("NAMEPLATE_TOKEN"), "{said}");
}

#[test]
fn a_wrong_configuration_stops_the_start_with_the_keys_name() {
    let mut shell = Shell::new();
    let said = shell.out("config check");
    assert!(said.starts_with("Beware: no configuration file was found: there is no nameplate.toml here"), "{said}");
    assert!(said.ends_with("\nThe configuration has no problems.\n"), "{said}");
    let (_, said) = shell.fails("config check --role serve");
    assert!(said.contains("vault.master_key: is missing") && said.contains("server.public_url: is missing"), "{said}");
    std::fs::write(shell.path().join("nameplate.toml"), "[server]\nlissten = \"x\"\n[vault]\nmaster_key = \"hunter2\"\n")
        .unwrap();
    shell.variables.push(("NAMEPLATE__DNS__TIMEOUT", "soon".into()));
    for command in ["config check", "migrate", "tenant list"] {
        let (code, said) = shell.fails(command);
        assert_eq!(code, 1);
        assert!(said.contains("server.lissten: there is no such key; did you mean server.listen?"), "{said}");
        assert!(said.contains("dns.timeout: \"soon\" is not a time") && said.contains("2 problems"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
    assert!(!shell.path().join("nameplate.db").exists());
    assert!(shell.fails("config check --config gone.toml").1.contains("gone.toml cannot be read"));
}

#[test]
fn what_config_check_finds_it_tells_programs_too() {
    let mut shell = Shell::new();
    let told: Value = serde_json::from_str(&shell.out("config check --json")).unwrap();
    assert_eq!(told, serde_json::json!({ "file": null, "problems": [] }));
    std::fs::write(
        shell.path().join("nameplate.toml"),
        "[issuers.main]\ndirectory = \"https://ca.test/\"\ncontacts = [\"mailto:ops@acme.com\", \"ops\"]\n",
    )
    .unwrap();
    let (_, said) = shell.fails("config check");
    assert!(said.contains("issuers.main.contacts: \"ops\" is no mail address: an address has one @"), "{said}");
    std::fs::write(shell.path().join("nameplate.toml"), "").unwrap();
    assert!(shell.out("config check").starts_with("Read nameplate.toml.\n"));
    shell.variables.push(("NAMEPLATE__VAULT__MASTER_KEY", "short".into()));
    let (code, said) = shell.fails("config check");
    assert!(code == 1 && said.contains("vault.master_key: version 1: the master key text is"), "{said}");
    let output = shell.run("config check --json");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &told["problems"][0]["key"]), (Some(1), &"vault.master_key".into()));
    shell.variables.push(("NAMEPLATE__DNS__TIMEOUT", "soon".into()));
    let told: Value = serde_json::from_slice(&shell.run("config check --json").stdout).unwrap();
    assert_eq!(told["problems"][0]["origin"], "NAMEPLATE__DNS__TIMEOUT");
}

#[test]
fn a_variable_that_is_no_text_is_refused_by_its_name() {
    use std::os::unix::ffi::OsStrExt as _;
    let mut command = Command::new(env!("CARGO_BIN_EXE_nameplate"));
    let value = std::ffi::OsStr::from_bytes(b"\xff");
    let output = command.args(["config", "check"]).env_clear().env("NAMEPLATE__LOG__LEVEL", value).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("NAMEPLATE__LOG__LEVEL: the environment variable is not UTF-8 text"), "{said}");
}

#[tokio::test]
async fn work_tells_an_older_schema_from_a_newer_one() {
    let mut shell = Shell::new();
    shell.variables.push(("NAMEPLATE__VAULT__MASTER_KEY", "07".repeat(32)));
    shell.variables.push(("NAMEPLATE__ISSUERS__CA__DIRECTORY", "https://ca.example/directory".into()));
    assert!(shell.fails("work").1.contains("there is no file nameplate.db"));
    let url = format!("sqlite:{}", shell.path().join("nameplate.db").display());
    let open = async || Store::open(&OpenSettings { url: url.clone(), connections: 1 }).await.unwrap();
    open().await.close().await;
    assert!(shell.fails("work").1.contains("run `nameplate migrate`"));
    shell.out("migrate");
    let store = open().await;
    let later = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (99999999999999, 'later', TRUE, x'00', 0)";
    store.execute(nameplate::store::sql(later)).await.unwrap();
    store.close().await;
    let (_, said) = shell.fails("work");
    assert!(said.contains("this binary is older than the database's schema"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn domains_are_claimed_shown_and_removed_over_the_api() {
    let web = Web::new(31).await;
    let (_, token) = web.tenant("acme").await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(nameplate::web::serve(listener, web.router.clone(), Env::real(), async {
        let _ = stopped.await;
    }));
    let mut shell = Shell::new();
    shell.variables = vec![("NAMEPLATE_SERVER", format!("http://{address}")), ("NAMEPLATE_TOKEN", token)];
    let shell = tokio::task::spawn_blocking(move || {
        let added = shell.out("domain add support.acme.test");
        assert!(added.starts_with("support.acme.test  awaiting_dns  dom_"), "{added}");
        assert!(added.contains("TXT    _nameplate-challenge.support  nameplate-verify="), "{added}");
        let listed = shell.out("domain list");
        assert!(listed.contains("support.acme.test  acme    awaiting_dns"), "{listed}");
        let shown: Value = serde_json::from_str(&shell.out("domain show support.acme.test --json")).unwrap();
        assert_eq!(shown["claim"], "awaiting_dns");
        let told = shell.out("explain SUPPORT.acme.test.");
        for line in
            ["support.acme.test, under acme.test", "Claim of acme  awaiting_dns since", "Stands at not_looked_yet", "Next:"]
        {
            assert!(told.contains(line), "{line} is not in {told}");
        }
        let told: Value = serde_json::from_str(&shell.out("explain support.acme.test --json")).unwrap();
        assert_eq!((&told["claims"][0]["domain"]["id"], told["holding"].is_null()), (&shown["id"], true));
        assert!(shell.fails("explain nobody.acme.test").1.contains("(claim_not_found)"));
        let (code, said) = shell.fails("domain add https://support.acme.test/");
        assert_eq!(code, 1);
        assert!(said.contains("Type support.acme.test instead. (hostname_is_url)"), "{said}");
        assert!(shell.fails("domain show other.acme.test").1.contains("there is no domain other.acme.test"));
        let pair = shell.out("domain add acme.test --with-www --redirect-to www.acme.test");
        let sent = "Visitors are sent on to www.acme.test as soon as it is served";
        assert!(pair.starts_with("acme.test  awaiting_dns") && pair.contains(sent), "{pair}");
        assert!(shell.out("explain acme.test").contains(sent));
        let kept = shell.out("domain redirect acme.test --off");
        assert!(kept.contains("Belongs together with www.acme.test"), "{kept}");
        let other_way = shell.out("domain redirect www.acme.test");
        assert!(other_way.contains("Visitors are sent on to acme.test as soon as it is served"), "{other_way}");
        assert!(shell.fails("domain redirect acme.test").1.contains("(redirect_loop)"));
        assert!(shell.fails("domain redirect support.acme.test").1.contains("has no other half"));
        assert_eq!(shell.fails("domain add b.test --redirect-to www.b.test").0, 2, "it needs --with-www");
        let id = shown["id"].as_str().unwrap();
        assert!(shell.out(&format!("domain remove {id}")).contains("withdrawn"));
        assert!(shell.fails("domain remove support.acme.test").1.contains("already_removed"));
        shell
    })
    .await
    .unwrap();
    stop.send(()).unwrap();
    server.await.unwrap().unwrap();
    let shell = tokio::task::spawn_blocking(move || shell.fails("domain list").1).await.unwrap();
    assert!(shell.contains("cannot be reached"), "{shell}");
}

#[test]
fn issuers_are_added_listed_and_refused_without_a_server() {
    let mut shell = Shell::new();
    shell.variables.push(("NAMEPLATE__VAULT__MASTER_KEY", "07".repeat(32)));
    shell.out("migrate");
    std::fs::write(shell.path().join("hmac"), "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nME\n").unwrap();
    let add = "issuer add spare --directory https://acme.example/directory --preference 5 --contact ops@example.com \
               --eab-key-id kid-1 --eab-hmac-file hmac --profile short --limit orders_per_account=10/1h --limit failures_per_name=0/1s";
    assert!(shell.out(add).starts_with("Added."));
    let listed: Value = serde_json::from_str(&shell.out("issuer list --json")).unwrap();
    let one = &listed[0];
    assert_eq!((&one["name"], &one["state"], &one["source"]), (&"spare".into(), &"no account".into(), &"command".into()));
    assert_eq!((&one["profile"], &one["bound"], &one["preference"]), (&"short".into(), &true.into(), &5.into()));
    assert_eq!(one["limits"]["orders_per_account"], serde_json::json!({"burst": 10, "per_secs": 3600}));
    assert!(one["limits"].get("failures_per_name").is_none() && one["limits"].get("certificates_per_domain").is_some());
    let table = shell.out("issuer list");
    assert!(
        table.starts_with("NAME") && table.contains("https://acme.example/directory") && !table.contains("zWND"),
        "{table}"
    );

    for (line, says) in [
        ("issuer add spare --directory https://other.example/directory", "issuer spare already"),
        ("issuer add twin --directory https://acme.example/directory", "issuer spare already"),
        ("issuer add plain --directory http://acme.example/directory", "no URL to use"),
        ("issuer add bad/name --directory https://b.example/directory", "no name for an issuer"),
        ("issuer add c --directory https://c.example/directory --limit orders=1/1h", "no limit"),
        ("issuer add d --directory https://d.example/directory --limit orders_per_account=0/1s", "must be above zero"),
        ("issuer add plain --directory https://user:word@acme.example/dir", "no directory"),
        ("issuer add plain --directory https://acme.example/directory#x", "no directory"),
        ("issuer remove nobody", "nameplate issuer list"),
        ("issuer test nobody", "nameplate issuer list"),
        ("issuer roll-key spare", "no account yet"),
    ] {
        let (code, said) = shell.fails(line);
        assert!(code == 1 && said.contains(says), "{line}: {said}");
    }
    assert!(shell.out("issuer register spare --new-key").contains("forgotten"));
    // What may change while it is in use: what is not named stays.
    let set = "issuer set spare --preference 7 --limit certificates_per_domain=9/1h --limit certificates_per_name=0/1s";
    assert!(shell.out(set).starts_with("Changed."));
    let listed: Value = serde_json::from_str(&shell.out("issuer list --json")).unwrap();
    let one = &listed[0];
    assert_eq!((&one["preference"], &one["profile"], &one["source"]), (&7.into(), &"short".into(), &"command".into()));
    assert_eq!(one["limits"]["certificates_per_domain"], serde_json::json!({"burst": 9, "per_secs": 3600}));
    assert_eq!(one["limits"]["orders_per_account"], serde_json::json!({"burst": 10, "per_secs": 3600}));
    assert!(one["limits"].get("certificates_per_name").is_none() && one["limits"].get("failures_per_name").is_none());
    shell.out("issuer set spare --profile=");
    let listed: Value = serde_json::from_str(&shell.out("issuer list --json")).unwrap();
    assert_eq!((&listed[0]["profile"], &listed[0]["preference"]), (&Value::Null, &7.into()));
    for (line, says) in [
        ("issuer set spare", "nothing to change"),
        ("issuer set spare --limit orders_per_account=0/1s", "must be above zero"),
        ("issuer set nobody --preference 1", "nameplate issuer list"),
    ] {
        let (code, said) = shell.fails(line);
        assert!(code == 1 && said.contains(says), "{line}: {said}");
    }
    // One that was added by mistake goes again, and may come back, under another name, too.
    assert!(shell.out("issuer remove spare").starts_with("Removed"));
    assert!(shell.out("issuer list").contains("not in use"));
    assert!(shell.fails("issuer remove spare").1.contains("not in use"));
    shell.out("issuer add twin --directory https://acme.example/directory");
    let listed: Value = serde_json::from_str(&shell.out("issuer list --json")).unwrap();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["name"]), (1, &"twin".into()), "{listed}");
    assert_eq!(listed[0]["state"], "no account");
}

/// A server that is not Nameplate's says so in a way that helps, and a copy never overwrites a file.
#[test]
fn what_is_no_nameplate_and_what_is_there_already_are_told_with_advice() {
    let mut shell = Shell::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let (status, body) = if n == 0 { ("200 OK", "<h1>Welcome to nginx</h1>") } else { ("404 Not Found", "gone") };
            let mut stream = stream.unwrap();
            let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
            let _ = std::io::Write::write_all(&mut stream, answer.as_bytes());
        }
    });
    shell.variables.push(("NAMEPLATE_TOKEN", "npo_x".into()));
    for _ in 0..2 {
        let (code, said) = shell.fails(&format!("domain list --server {server}"));
        assert!(code == 1 && said.contains("is no Nameplate API") && said.contains("NAMEPLATE_SERVER"), "{said}");
    }
    shell.out("migrate");
    std::fs::write(shell.path().join("copy.db"), "mine").unwrap();
    let (_, said) = shell.fails("backup copy.db");
    assert!(said.contains("copy.db is there already") && said.contains("give another name"), "{said}");
    assert_eq!(std::fs::read_to_string(shell.path().join("copy.db")).unwrap(), "mine");
    let (_, said) = shell.fails("issuer add spare --directory https://ca.test/ --contact ops@localhost");
    assert!(said.contains("\"ops@localhost\" is no mail address for --contact"), "{said}");
}
