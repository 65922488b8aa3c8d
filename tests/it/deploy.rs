//! What is handed out for running it for real: the compose file, the image, the units and the samples, held to the program.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// A YAML text as JSON, read by Debian's python3-yaml.
fn yaml(text: &str) -> Value {
    let mut child = Command::new("/usr/bin/python3")
        .args(["-c", "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "no YAML, or no python3-yaml");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// `${NAME:-default}` and `$$` as compose reads them, with nothing set.
fn interpolated(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else {
            let (inside, after) = rest.strip_prefix('{').and_then(|r| r.split_once('}')).expect("only ${NAME:-default}");
            out.push_str(inside.split_once(":-").expect("every variable has a default").1);
            rest = after;
        }
    }
    out + rest
}

/// A directory that stands for the machine: secrets where the container or systemd would put them.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("master_key", "07".repeat(32)),
            ("master-key", "07".repeat(32)),
            ("database_url", "postgres://nameplate:x@postgres/nameplate".to_owned()),
            ("database-url", "postgres://nameplate:x@localhost/nameplate".to_owned()),
            ("join-token", "npj1.x".to_owned()),
        ] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        Machine(dir)
    }

    fn place(&self, value: &str, mount: &str) -> String {
        value.replace(mount, &format!("{}/", self.0.path().display()))
    }

    /// What `config check` says of a role in this environment, and with this file.
    fn check(&self, role: &str, variables: &BTreeMap<String, String>, config: Option<&Path>) -> (bool, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nameplate"));
        command.args(["config", "check", "--role", role]).env_clear().envs(variables).current_dir(self.0.path());
        let output = command.args(config.iter().flat_map(|c| [Path::new("--config"), *c])).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Whether the command line is one of ours: its help is given.
fn is_a_command(words: &[String]) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nameplate"));
    command.args(words).arg("--help").env_clear().output().unwrap().status.success()
}

fn words(value: &Value) -> Vec<String> {
    value.as_array().map(|list| list.iter().map(|w| w.as_str().unwrap().to_owned()).collect()).unwrap_or_default()
}

fn env_file(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| line.split_once('=').unwrap_or_else(|| panic!("{line}")))
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect()
}

#[test]
fn every_service_of_the_compose_file_is_accepted_by_the_program() {
    let file = yaml(&read("docker-compose.yml"));
    let machine = Machine::new();
    let services = file["services"].as_object().unwrap();
    let named: Vec<&str> = services.keys().map(String::as_str).collect();
    assert_eq!(named, ["control", "edge-1", "edge-2", "migrate", "pebble", "postgres"]);
    let mut checked = Vec::new();
    for (name, service) in services {
        if service["image"] != "nameplate:local" {
            continue;
        }
        let mut variables = BTreeMap::new();
        for entry in service["env_file"].as_array().unwrap() {
            let path = interpolated(entry["path"].as_str().unwrap());
            if entry["required"] != Value::Bool(false) {
                variables.extend(env_file(&read(&path)));
            }
        }
        for (key, value) in service["environment"].as_object().unwrap() {
            variables.insert(key.clone(), machine.place(&interpolated(value.as_str().unwrap()), "/run/secrets/"));
        }
        let command = words(&service["command"]);
        assert!(is_a_command(&command), "{name}: {command:?}");
        let role = match command[0].as_str() {
            "migrate" => "work",
            role => role,
        };
        let (good, said) = machine.check(role, &variables, None);
        assert!(good, "{name}: {said}");
        // What is mounted is declared, who is waited for exists, and nobody runs as root or may become it.
        for secret in words(&service["secrets"]) {
            assert!(root().join("docker-compose.yml").exists() && file["secrets"][&secret].is_object(), "{name}: {secret}");
        }
        for (other, _) in service["depends_on"].as_object().into_iter().flatten() {
            assert!(services.contains_key(other), "{name}: {other}");
        }
        for mount in words(&service["volumes"]) {
            assert!(file["volumes"].get(mount.split(':').next().unwrap()).is_some(), "{name}: {mount}");
        }
        let grace = service["stop_grace_period"].as_str().and_then(|s| s.strip_suffix('s')).unwrap().parse::<u64>().unwrap();
        assert!(grace > nameplate::roles::EDGE_DRAIN.as_secs(), "{name}: what runs is cut off");
        if command[0] != "migrate" {
            // The health check asks the port that is opened for it.
            let port = variables["NAMEPLATE__METRICS__LISTEN"].rsplit(':').next().unwrap().to_owned();
            let asks = words(&service["healthcheck"]["test"])[3].clone();
            assert!(asks.contains(&format!("/{port} ")) && asks.contains("/readyz "), "{name}: {asks}");
        }
        assert_eq!((&service["read_only"], &service["cap_drop"][0]), (&Value::Bool(true), &Value::from("ALL")), "{name}");
        checked.push(name.as_str());
    }
    assert_eq!(checked, ["control", "edge-1", "edge-2", "migrate"]);
    // A typo would be found: this test is no use if anything passes.
    let wrong = BTreeMap::from([("NAMEPLATE__EDGE__NAEM".to_owned(), "x".to_owned())]);
    assert!(!machine.check("edge", &wrong, None).0);
}

#[test]
fn every_issuer_that_the_compose_file_can_use_is_one() {
    let machine = Machine::new();
    let mut seen = 0;
    for entry in std::fs::read_dir(root().join("deploy/compose")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "env") {
            let mut variables = env_file(&std::fs::read_to_string(&path).unwrap());
            for (key, value) in [
                ("VAULT__MASTER_KEY", "07".repeat(32)),
                ("ROUTING__CANONICAL_SUFFIX", "app.example".to_owned()),
                ("SERVER__PUBLIC_URL", "https://portal.example".to_owned()),
                ("FEED__URL", "https://feed.example:8443".to_owned()),
            ] {
                variables.insert(format!("NAMEPLATE__{key}"), value);
            }
            let (good, said) = machine.check("serve", &variables, None);
            assert!(good, "{}: {said}", path.display());
            seen += 1;
        }
    }
    assert_eq!(seen, 3);
}

/// The health checks as the containers' shell runs them, against something that answers.
#[test]
fn the_health_checks_tell_good_answers_from_bad_ones() {
    let file = yaml(&read("docker-compose.yml"));
    for service in ["control", "edge-1", "edge-2"] {
        let test = words(&file["services"][service]["healthcheck"]["test"]);
        assert_eq!(&test[..3], ["CMD", "bash", "-c"]);
        for (answer, healthy) in [("200 OK", true), ("503 Service Unavailable", false)] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let at = listener.local_addr().unwrap().port();
            let answering = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    std::io::Read::read_exact(&mut stream, &mut byte).unwrap();
                    asked.extend(byte);
                }
                write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n").unwrap();
                String::from_utf8_lossy(&asked).into_owned()
            });
            let script = interpolated(&test[3]).replace("/9090 ", &format!("/{at} "));
            assert!(script.contains(&at.to_string()), "{script}");
            let status = Command::new("bash").arg("-c").arg(script).status().unwrap();
            assert_eq!(status.success(), healthy, "{service} {answer}");
            assert!(answering.join().unwrap().starts_with("GET /"));
        }
    }
}

#[test]
fn what_the_image_is_built_from_exists_and_is_all_that_the_program_needs() {
    let dockerfile = read("Dockerfile");
    let copied: Vec<&str> = dockerfile
        .lines()
        .filter(|line| line.starts_with("COPY ") && !line.contains("--from="))
        .flat_map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().split_last().map(|(_, s)| s.to_vec()).unwrap())
        .collect();
    let allowed: Vec<String> =
        read(".dockerignore").lines().filter_map(|l| l.strip_prefix('!')).map(str::to_owned).collect();
    for path in &copied {
        assert!(root().join(path).exists(), "COPY {path}");
        assert!(allowed.iter().any(|a| path == a || path.starts_with(&format!("{a}/"))), ".dockerignore leaves {path} out");
    }
    for needed in ["Cargo.toml", "Cargo.lock", "src", "migrations", "templates", "benches"] {
        assert!(copied.contains(&needed), "{needed} is not copied");
    }
    let toolchain =
        read("Cargo.toml").lines().find_map(|l| l.strip_prefix("rust-version = ")).unwrap().trim_matches('"').to_owned();
    assert!(dockerfile.contains(&format!("FROM rust:{toolchain}-")), "the image builds with another Rust than {toolchain}");
    assert!(dockerfile.contains("USER 10001:10001") && dockerfile.trim_end().ends_with("CMD [\"--help\"]"));
    // What the sources take in at build time lies in a copied folder.
    let mut files = vec![root().join("src")];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        // What only a test takes in is not built into the image.
        let tests = path.file_name().is_some_and(|name| name == "tests.rs") || path.to_string_lossy().contains("/tests/");
        let shipped = if tests { "" } else { text.split("#[cfg(test)]").next().unwrap_or_default() };
        for part in shipped.split("include_str!(\"").skip(1) {
            let taken = part.split('"').next().unwrap();
            let target = path.parent().unwrap().join(taken).canonicalize().unwrap();
            let inside = target.strip_prefix(root().canonicalize().unwrap()).unwrap().to_string_lossy().into_owned();
            assert!(copied.iter().any(|c| inside.starts_with(c)), "{inside} is not copied into the image");
        }
    }
}

/// `Key=value` lines of a unit, comments left out.
fn settings(unit: &str) -> Vec<(String, String)> {
    let lines = unit.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

fn units() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = std::fs::read_dir(root().join("deploy/systemd"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&path).unwrap()))
        .collect();
    all.sort();
    assert_eq!(all.len(), 3);
    all
}

#[test]
fn every_unit_starts_a_role_that_accepts_its_environment_and_sample() {
    let machine = Machine::new();
    for (name, unit) in units() {
        let settings = settings(&unit);
        let all = |key: &str| settings.iter().filter(|(k, _)| k == key).map(|(_, v)| v.clone()).collect::<Vec<_>>();
        let start: Vec<String> = all("ExecStart")[0].split_whitespace().map(str::to_owned).collect();
        assert_eq!((start[0].as_str(), start[2].as_str()), ("/usr/bin/nameplate", "--config"), "{name}");
        assert!(is_a_command(&start[1..2]), "{name}");
        let sample = root().join("deploy").join(Path::new(&start[3]).file_name().unwrap());
        let credentials: Vec<String> =
            all("LoadCredential").iter().map(|c| c.split(':').next().unwrap().to_owned()).collect();
        let mut variables = BTreeMap::new();
        for line in all("Environment") {
            let (key, value) = line.split_once('=').unwrap();
            if let Some(credential) = value.strip_prefix("%d/") {
                assert!(credentials.contains(&credential.to_owned()), "{name}: {credential} is not loaded");
            }
            variables.insert(key.to_owned(), machine.place(&value.replace("%S/", "/var/lib/"), "%d/"));
        }
        let (good, said) = machine.check(&start[1], &variables, Some(&sample));
        assert!(good, "{name}: {said}");
        let state = &all("StateDirectory")[0];
        assert_eq!(all("WorkingDirectory")[0], format!("%S/{state}"), "{name}");
        // Without StateDirectory nothing may be written; where the sample writes is inside it.
        let text = std::fs::read_to_string(&sample).unwrap() + &all("Environment").join("\n").replace("%S/", "/var/lib/");
        assert!(name.contains("work") || text.contains(&format!("/var/lib/{state}")), "{name}");
        for hard in ["DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes", "MemoryDenyWriteExecute=yes"] {
            assert!(unit.lines().any(|line| line == hard), "{name}: {hard}");
        }
        let caps = if start[1] == "edge" { "CAP_NET_BIND_SERVICE" } else { "" };
        assert_eq!(
            (all("AmbientCapabilities"), all("CapabilityBoundingSet")),
            (vec![caps.to_owned()], vec![caps.to_owned()])
        );
    }
}

#[test]
fn systemd_finds_nothing_to_say_about_the_units() {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = units()
        .into_iter()
        .map(|(name, unit)| {
            let path = dir.path().join(name);
            std::fs::write(&path, unit.replace("/usr/bin/nameplate", env!("CARGO_BIN_EXE_nameplate"))).unwrap();
            path
        })
        .collect();
    let output = Command::new("systemd-analyze").arg("verify").arg("--man=no").args(&paths).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let about_ours: Vec<&str> = said.lines().filter(|line| line.contains("nameplate-")).collect();
    assert!(about_ours.is_empty(), "{about_ours:#?}");
    let broken = dir.path().join("nameplate-wrong.service");
    std::fs::write(&broken, "[Service]\nExecStart=/nowhere/nameplate\nProtectSystem=perhaps\n").unwrap();
    let output = Command::new("systemd-analyze").arg("verify").arg("--man=no").arg(&broken).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("nameplate-wrong"), "it would find something");
}

#[test]
fn the_scripts_are_shell_and_make_what_the_compose_file_asks_for() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("deploy/compose")).unwrap();
    let script = dir.path().join("deploy/compose/make-secrets");
    std::fs::copy(root().join("deploy/compose/make-secrets"), &script).unwrap();
    let run = || Command::new("sh").arg(&script).output().unwrap();
    assert!(run().status.success());
    let file = yaml(&read("docker-compose.yml"));
    for (name, secret) in file["secrets"].as_object().unwrap() {
        let text = std::fs::read_to_string(dir.path().join(secret["file"].as_str().unwrap())).unwrap();
        assert!(!text.is_empty(), "{name}");
    }
    let secrets = |name: &str| std::fs::read_to_string(dir.path().join("deploy/secrets").join(name)).unwrap();
    assert!(secrets("database.url").contains(&secrets("postgres.password")));
    let key = secrets("master.key");
    let machine = Machine::new();
    let variables = BTreeMap::from([("NAMEPLATE__VAULT__MASTER_KEY".to_owned(), key.trim().to_owned())]);
    assert!(machine.check("edge", &variables, None).1.contains("edge.name"), "the key itself is good");
    assert!(!machine.check("edge", &variables, None).1.contains("master_key"));
    assert!(!run().status.success(), "a second run changes nothing");
    assert_eq!(secrets("master.key"), key);
    assert!(Command::new("sh").arg("-n").arg(root().join("deploy/pebble/start")).status().unwrap().success());
    let pebble: Value = serde_json::from_str(&read("deploy/pebble/config.json")).unwrap();
    assert!(pebble["pebble"]["listenAddress"].as_str().unwrap().ends_with(":14000"));
    assert!(read("deploy/compose/pebble.env").contains("https://pebble:14000/dir"));
}

/// The fenced blocks of a page in one language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}");
    let mut found = Vec::new();
    let mut open: Option<String> = None;
    for line in page.lines() {
        let bare = line.trim_start();
        match (open.as_mut(), bare) {
            (Some(_), "```") => found.extend(open.take()),
            (Some(text), _) => text.push_str(&format!("{bare}\n")),
            (None, _) if bare == fence => open = Some(String::new()),
            (None, _) => {}
        }
    }
    found
}

#[test]
fn the_guides_examples_are_accepted_by_the_program() {
    let machine = Machine::new();
    let (mut commands, mut configurations) = (0, 0);
    for page in ["docs/first-hour.md", "docs/backup.md"] {
        let text = read(page);
        let whole = blocks(&text, "toml").into_iter().find(|block| block.contains("[server]")).unwrap_or_default();
        for block in blocks(&text, "toml") {
            let role = if block.contains("[edge]") { "edge" } else { "serve" };
            // The block that changes the issuer stands in place of the one before.
            let config = if block.contains("[issuers.letsencrypt]") {
                let (before, after) = whole.split_once("[issuers.letsencrypt_staging]").unwrap();
                format!("{before}{block}\n{}", &after[after.find("[feed]").unwrap()..])
            } else {
                block
            };
            let file = machine.0.path().join("example.toml");
            std::fs::write(&file, &config).unwrap();
            let variables = BTreeMap::from([("NAMEPLATE__VAULT__MASTER_KEY".to_owned(), "07".repeat(32))]);
            let (good, said) = machine.check(role, &variables, Some(&file));
            assert!(good, "{page}: {said}\n{config}");
            configurations += 1;
        }
        for line in blocks(&text, "sh").iter().flat_map(|block| block.lines()) {
            if let Some(rest) = line.strip_prefix("nameplate ") {
                let mut words: Vec<String> = Vec::new();
                for (n, part) in rest.split('"').enumerate() {
                    match n % 2 {
                        0 => words.extend(part.split_whitespace().map(str::to_owned)),
                        _ => words.push(part.to_owned()),
                    }
                }
                assert!(is_a_command(&words), "{page}: nameplate {rest}");
                commands += 1;
            }
            for path in line.split_whitespace().filter(|word| word.starts_with("deploy/")) {
                assert!(root().join(path).exists(), "{page}: {path}");
            }
        }
    }
    assert!(commands >= 18 && configurations == 3, "{commands} commands, {configurations} configurations");
    assert!(!is_a_command(&["tenant".into(), "destroy".into()]) && !is_a_command(&["backup".into(), "--nothing".into()]));
}
