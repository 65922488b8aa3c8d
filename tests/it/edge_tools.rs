//! Tools that people have at hand, against the edge: curl and h2load.

use std::process::Stdio;

use base64::Engine as _;
use tokio::process::Command;

use crate::edge_http2::served;

const HOST: &str = "support.acme.test";

async fn run(program: &str, arguments: &[&str]) -> (bool, String) {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap_or_else(|e| panic!("{program}: {e}; ./scripts/test installs it"));
    let (out, err) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    (child.status.success(), format!("{out}{err}"))
}

#[tokio::test]
async fn curl_checks_the_certificate_and_speaks_both_versions() {
    let (world, _origin, edge) = served(|_| {}).await;
    let root = world.dir.path().join("root.pem");
    let encoded = base64::engine::general_purpose::STANDARD.encode(&world.ca.root);
    let lines: Vec<&str> = encoded.as_bytes().chunks(64).map(|c| std::str::from_utf8(c).unwrap()).collect();
    let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"));
    std::fs::write(&root, pem).unwrap();
    let resolve = format!("{HOST}:{}:127.0.0.1", edge.tls.port());
    let url = |path: &str| format!("https://{HOST}:{}{path}", edge.tls.port());
    let curl = async |more: &[&str]| {
        let mut arguments = vec!["--silent", "--show-error", "--max-time", "20", "--noproxy", "*"];
        arguments.extend(["--cacert", root.to_str().unwrap(), "--resolve", &resolve]);
        arguments.extend(more);
        run("curl", &arguments).await
    };
    for (version, told) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let write = ["--write-out", "version=%{http_version} status=%{http_code}\n"];
        let (done, said) = curl(&[&[version, &url("/a?b=c")], &write[..]].concat()).await;
        assert!(done && said.contains("GET /a?b=c\n"), "{said}");
        assert!(said.contains(&format!("version={told} status=200")), "{said}");
        // A megabyte up and down again.
        let file = world.dir.path().join("body");
        std::fs::write(&file, vec![b'z'; 1 << 20]).unwrap();
        let data = format!("@{}", file.display());
        let back = world.dir.path().join("back");
        let sent = ["--data-binary", &data, "--output", back.to_str().unwrap(), &url("/echo")];
        let (done, said) = curl(&[&[version], &sent[..]].concat()).await;
        assert!(done, "{said}");
        assert_eq!(std::fs::read(&back).unwrap().len(), 1 << 20);
        let (done, said) = curl(&[version, "--head", &url("/")]).await;
        assert!(done && said.contains("x-request-id"), "{said}");
    }
    let plain = format!("http://{HOST}:{}/x", edge.plain.port());
    let resolve_plain = format!("{HOST}:{}:127.0.0.1", edge.plain.port());
    let (done, said) = curl(&["--resolve", &resolve_plain, "--head", &plain]).await;
    assert!(done && said.contains("location: https://support.acme.test:8443/x"), "{said}");
    let stranger = format!("nobody.test:{}:127.0.0.1", edge.tls.port());
    let (done, said) = curl(&["--resolve", &stranger, &format!("https://nobody.test:{}/", edge.tls.port())]).await;
    assert!(!done && said.contains("curl: (35)"), "{said}");
    edge.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h2load_gets_an_answer_to_every_request() {
    let (_world, origin, edge) = served(|_| {}).await;
    let to = format!("--connect-to=127.0.0.1:{}", edge.tls.port());
    let url = format!("https://{HOST}/");
    let (done, said) = run("h2load", &["-n", "2000", "-c", "8", "-m", "20", &to, &url]).await;
    assert!(done && said.contains("2000 succeeded, 0 failed, 0 errored"), "{said}");
    let (done, said) = run("h2load", &["--h1", "-n", "500", "-c", "8", &to, &url]).await;
    assert!(done && said.contains("500 succeeded, 0 failed, 0 errored"), "{said}");
    assert_eq!(origin.requests.load(std::sync::atomic::Ordering::SeqCst), 2_500);
    let text = edge.view.metrics();
    assert!(text.contains("nameplate_edge_requests_total{protocol=\"h2\",status=\"2xx\"} 2000"), "{text}");
    edge.stop().await;
}
