//! A real Chromium, driven over WebDriver (W3C) by Debian's chromedriver. Errors of certificates are not ignored: the roots
//! to trust are imported into the browser's own store.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nameplate::env::Env;
use serde_json::{Value, json};

use super::services;

/// How long a page may take to show what is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at it.
const PAUSE: Duration = Duration::from_millis(25);
/// The key under which WebDriver names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The key that moves the focus on.
pub const TAB: &str = "\u{E004}";

/// What the page is looked at with.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    pub width: u32,
    pub height: u32,
    pub dark: bool,
    pub scripts: bool,
}

pub const DESKTOP: Screen = Screen { width: 1280, height: 900, dark: false, scripts: true };
pub const PHONE: Screen = Screen { width: 390, height: 844, dark: false, scripts: true };

impl Screen {
    pub fn dark(self) -> Screen {
        Screen { dark: true, ..self }
    }

    pub fn without_scripts(self) -> Screen {
        Screen { scripts: false, ..self }
    }
}

/// A browser with one window.
pub struct Browser {
    http: reqwest::Client,
    session: String,
    driver: Child,
    env: Env,
    scripts: bool,
    _home: tempfile::TempDir,
}

impl Browser {
    /// Opens one that trusts these roots (PEM files) and finds these hosts on port 443 at these addresses.
    pub async fn open(screen: Screen, roots: &[&Path], hosts: &[(&str, SocketAddr)]) -> Browser {
        let home = tempfile::tempdir().unwrap();
        trust(home.path(), roots);
        let at = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let driver = Command::new(services::chromedriver())
            .arg(format!("--port={}", at.port()))
            .env("HOME", home.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let env = Env::real();
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE * 2).build().unwrap();
        let mut browser =
            Browser { http, session: format!("http://{at}/session"), driver, env, scripts: screen.scripts, _home: home };
        let id = browser.begin(screen, hosts).await;
        browser.session = format!("http://{at}/session/{id}");
        browser.shape(screen).await;
        browser
    }

    async fn begin(&self, screen: Screen, hosts: &[(&str, SocketAddr)]) -> String {
        let rules: Vec<String> = hosts.iter().map(|(host, at)| format!("MAP {host}:443 {at}")).collect();
        let mut arguments = vec![
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-quic".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            format!("--window-size={},{}", screen.width, screen.height),
        ];
        if !rules.is_empty() {
            arguments.push(format!("--host-resolver-rules={}", rules.join(",")));
        }
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "acceptInsecureCerts": false,
            "goog:chromeOptions": { "binary": services::chromium(), "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let deadline = self.env.now() + PATIENCE;
        loop {
            match self.http.post(&self.session).json(&wanted).send().await {
                Ok(answer) => {
                    let body: Value = answer.json().await.unwrap();
                    return body["value"]["sessionId"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned();
                }
                Err(error) => assert!(self.env.now() < deadline, "chromedriver does not answer: {error}"),
            }
            self.env.sleep(PAUSE).await;
        }
    }

    async fn shape(&self, screen: Screen) {
        let metrics =
            json!({ "width": screen.width, "height": screen.height, "deviceScaleFactor": 1, "mobile": screen.width < 600 });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
        let scheme = if screen.dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", media).await;
        self.devtools("Emulation.setScriptExecutionDisabled", json!({ "value": !screen.scripts })).await;
    }

    async fn devtools(&self, cmd: &str, params: Value) -> Value {
        self.post("/goog/cdp/execute", json!({ "cmd": cmd, "params": params })).await
    }

    /// One command; what went wrong comes as an error's name and message.
    async fn command(&self, method: reqwest::Method, path: &str, body: Option<Value>) -> Result<Value, String> {
        let mut request = self.http.request(method, format!("{}{path}", self.session));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap_or_else(|e| panic!("{path}: {e}"));
        let fine = answer.status().is_success();
        let body: Value = answer.json().await.unwrap();
        if fine {
            Ok(body["value"].clone())
        } else {
            Err(format!("{}: {}", body["value"]["error"], body["value"]["message"]))
        }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.command(reqwest::Method::POST, path, Some(body)).await.unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    async fn get(&self, path: &str) -> Value {
        self.command(reqwest::Method::GET, path, None).await.unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// Goes to an address; what the browser says where it refuses to.
    pub async fn try_go(&self, url: &str) -> Result<(), String> {
        self.command(reqwest::Method::POST, "/url", Some(json!({ "url": url }))).await.map(|_| ())
    }

    pub async fn go(&self, url: &str) {
        self.try_go(url).await.unwrap_or_else(|e| panic!("{url}: {e}"));
    }

    pub async fn url(&self) -> String {
        self.get("/url").await.as_str().unwrap().to_owned()
    }

    pub async fn title(&self) -> String {
        self.get("/title").await.as_str().unwrap().to_owned()
    }

    async fn find(&self, xpath: &str) -> Option<String> {
        let wanted = json!({ "using": "xpath", "value": xpath });
        let found = self.command(reqwest::Method::POST, "/element", Some(wanted)).await.ok()?;
        found[ELEMENT].as_str().map(str::to_owned)
    }

    /// Waits until `look` finds something.
    async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut(&Browser) -> Option<T>) -> T {
        let deadline = self.env.now() + PATIENCE;
        loop {
            if let Some(found) = look(self).await {
                return found;
            }
            if self.env.now() >= deadline {
                panic!("{what} did not come at {}:\n{}", self.url().await, self.text().await);
            }
            self.env.sleep(PAUSE).await;
        }
    }

    /// Does something to the element until it succeeds: a page that renews itself may take it away in between.
    async fn on(&self, xpath: &str, act: &str, body: Value) {
        self.until(&format!("{act} on {xpath}"), async |browser| {
            let element = browser.find(xpath).await?;
            let path = format!("/element/{element}/{act}");
            browser.command(reqwest::Method::POST, &path, Some(body.clone())).await.ok()
        })
        .await;
    }

    /// Presses the button or follows the link that says this; one in the content, where there is one, before those around it.
    pub async fn press(&self, words: &str) {
        let named = format!("[normalize-space()={words:?} or @aria-label={words:?} or @value={words:?}]");
        let below = |top: &str| ["button", "a", "input", "summary"].map(|tag| format!("{top}//{tag}{named}")).join(" | ");
        let at = format!("({})[1] | ({})[1][not({})]", below("//main"), below(""), below("//main"));
        self.on(&at, "click", json!({})).await;
    }

    /// Types into the field with this label.
    pub async fn fill(&self, label: &str, text: &str) {
        let at = format!(
            "(//*[(self::input or self::textarea) and (@id=//label[normalize-space()={label:?}]/@for or \
             ancestor::label[starts-with(normalize-space(), {label:?})] or @aria-label={label:?})])[1]"
        );
        self.on(&at, "clear", json!({})).await;
        self.on(&at, "value", json!({ "text": text })).await;
    }

    /// Chooses in the list with this label.
    pub async fn choose(&self, label: &str, option: &str) {
        let list = format!(
            "//select[@id=//label[normalize-space()={label:?}]/@for or ancestor::label[starts-with(normalize-space(), {label:?})]]"
        );
        self.on(&format!("{list}/option[normalize-space()={option:?}]"), "click", json!({})).await;
    }

    /// The text that the page shows.
    pub async fn text(&self) -> String {
        match self.find("//body").await {
            Some(body) => {
                let text = self.command(reqwest::Method::GET, &format!("/element/{body}/text"), None).await;
                text.ok().and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default()
            }
            None => String::new(),
        }
    }

    /// Waits until the page shows these words.
    pub async fn shows(&self, words: &str) {
        self.until(&format!("{words:?}"), async |browser| browser.text().await.contains(words).then_some(())).await;
    }

    /// Waits until the page shows these words, loading it anew between the looks: what a reader without scripts would do.
    pub async fn shows_after_reloads(&self, words: &str) {
        self.until(&format!("{words:?}"), async |browser| {
            if browser.text().await.contains(words) {
                return Some(());
            }
            browser.post("/refresh", json!({})).await;
            None
        })
        .await;
    }

    /// The text of an element.
    pub async fn words(&self, xpath: &str) -> String {
        self.until(xpath, async |browser| {
            let element = browser.find(xpath).await?;
            let text = browser.command(reqwest::Method::GET, &format!("/element/{element}/text"), None).await.ok()?;
            text.as_str().map(str::to_owned)
        })
        .await
    }

    /// Waits until the browser is at this path.
    pub async fn until_at(&self, path: &str) {
        self.until(path, async |browser| browser.url().await.ends_with(path).then_some(())).await;
    }

    /// Keys to whatever has the focus.
    pub async fn keys(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() })))
            .collect();
        self.post("/actions", json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] })).await;
    }

    /// Runs a script in the page.
    pub async fn script(&self, script: &str) -> Value {
        self.post("/execute/sync", json!({ "script": script, "args": [] })).await
    }

    /// Whether the page is wider than the screen.
    pub async fn scrolls_sideways(&self) -> bool {
        let wider = "return document.documentElement.scrollWidth > document.documentElement.clientWidth;";
        self.script(wider).await.as_bool().unwrap()
    }

    /// The whole page as a picture below `target/screenshots`.
    pub async fn picture(&self, name: &str) {
        let taken = self.devtools("Page.captureScreenshot", json!({ "captureBeyondViewport": true })).await;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), STANDARD.decode(taken["data"].as_str().unwrap()).unwrap())
            .unwrap();
    }

    /// What axe-core finds wrong with the page, one line a fault, its impact first.
    pub async fn faults(&self) -> Vec<String> {
        // Its timers need scripts; those of a page that was loaded without them do not run any more.
        self.devtools("Emulation.setScriptExecutionDisabled", json!({ "value": false })).await;
        self.script(&std::fs::read_to_string(services::axe()).unwrap()).await;
        let run = "const done = arguments[arguments.length - 1]; \
                   axe.run(document).then(r => done(r.violations), e => done([{ id: String(e), impact: 'critical', nodes: [] }]));";
        let found = self.post("/execute/async", json!({ "script": run, "args": [] })).await;
        self.devtools("Emulation.setScriptExecutionDisabled", json!({ "value": !self.scripts })).await;
        let faults = found.as_array().unwrap_or_else(|| panic!("axe says {found}"));
        let line = |fault: &Value| {
            let at: Vec<String> =
                fault["nodes"].as_array().into_iter().flatten().map(|node| node["target"].to_string()).collect();
            format!("{} {}: {} at {}", fault["impact"].as_str().unwrap_or("-"), fault["id"], fault["help"], at.join(" "))
        };
        faults.iter().map(line).collect()
    }

    /// What the page complained of in the console: scripts that failed, what the content policy refused, what did not load. Pages
    /// that say no are logged by their status as well, and are none of it.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self.post("/se/log", json!({ "type": "browser" })).await;
        let lines = log.as_array().into_iter().flatten().filter(|line| line["level"] == "SEVERE");
        let a_page_said_no = |text: &str| {
            (text.contains("status of 401") || text.contains("status of 422"))
                && !text.contains("/assets/")
                && !text.contains("favicon")
        };
        lines.map(|line| line["message"].to_string()).filter(|text| !a_page_said_no(text)).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // chromedriver ends its Chromium with itself when asked; a killed one would leave it behind.
        let url = self.session.clone();
        let ended = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(async { reqwest::Client::new().delete(url).send().await.is_ok() }))
        });
        let _ = ended.join();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Puts roots into the certificate store that Chromium reads below this home.
fn trust(home: &Path, roots: &[&Path]) {
    let store = home.join(".pki/nssdb");
    std::fs::create_dir_all(&store).unwrap();
    let at = format!("sql:{}", store.display());
    let certutil = |arguments: &[&str]| {
        let done = Command::new(services::certutil()).args(arguments).args(["-d", &at]).output().unwrap();
        assert!(done.status.success(), "certutil {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    certutil(&["-N", "--empty-password"]);
    for (i, root) in roots.iter().enumerate() {
        certutil(&["-A", "-n", &format!("root {i}"), "-t", "C,,", "-i", root.to_str().unwrap()]);
    }
}
