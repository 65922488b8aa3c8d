//! An ACME client that is not ours, unmodified, against the test CA: what it accepts is RFC 8555 and not our own reading.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use nameplate::env::Env;
use nameplate::sandbox::ca::{OverHttp, RunningCa, Settings, TestCa};
use x509_parser::pem::Pem;

use crate::support::services;

const HOST: &str = "support.acme.test";

/// The CA, and the port on which it looks for answers.
async fn ca(dir: &Path) -> (RunningCa, SocketAddr) {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let answers = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let validation = OverHttp {
        env: Env::real(),
        resolve: Arc::new(move |_| Box::pin(async move { Ok(vec![answers]) })),
        caa: Arc::new(|_, _| Box::pin(async { Ok(()) })),
    };
    let ca = TestCa::new(Settings::default(), Env::real(), Arc::new(validation)).unwrap();
    std::fs::write(dir.join("root.pem"), ca.root_pem()).unwrap();
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    (ca.serve(listener).unwrap(), answers)
}

async fn certbot(dir: &Path, directory: &str, arguments: &[String]) -> Output {
    let mut command = Command::new(services::certbot());
    command
        .args(arguments)
        .args(["--non-interactive", "--server", directory])
        .env("REQUESTS_CA_BUNDLE", dir.join("root.pem"))
        .env_remove("HTTPS_PROXY")
        .env_remove("https_proxy");
    for place in ["config", "work", "logs"] {
        command.arg(format!("--{place}-dir")).arg(dir.join(place));
    }
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

#[track_caller]
fn fine(output: &Output) {
    let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).join("\n");
    assert!(output.status.success(), "{said}");
}

fn serial(chain: &Path) -> String {
    let text = std::fs::read(chain).unwrap();
    let chain: Vec<Pem> = Pem::iter_from_buffer(&text).map(Result::unwrap).collect();
    assert!(chain.len() >= 2, "{} certificates", chain.len());
    let leaf = chain[0].parse_x509().unwrap();
    let names = leaf.subject_alternative_name().unwrap().unwrap();
    assert_eq!(format!("{:?}", names.value.general_names), format!("[DNSName({HOST:?})]"));
    leaf.raw_serial_as_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn certbot_gets_renews_and_revokes_a_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let (ca, answers) = ca(dir.path()).await;
    let port = answers.port().to_string();
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let order = format!(
        "certonly --standalone --http-01-address 127.0.0.1 --http-01-port {port} --agree-tos -m ops@acme.test -d {HOST}"
    );
    fine(&certbot(dir.path(), ca.directory_url(), &words(&order)).await);
    let live = dir.path().join("config/live").join(HOST);
    let first = serial(&live.join("fullchain.pem"));

    fine(&certbot(dir.path(), ca.directory_url(), &words("renew --force-renewal --no-random-sleep-on-renew")).await);
    assert_ne!(serial(&live.join("fullchain.pem")), first);

    fine(&certbot(dir.path(), ca.directory_url(), &words(&format!("revoke --cert-name {HOST} --reason superseded"))).await);
    assert!(!live.exists());
}
