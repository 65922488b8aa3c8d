//! The real ACME client against Debian's pebble: the settings we start it with let a certificate through.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use hickory_proto::op::{Message, MessageType, OpCode};
use hickory_proto::rr::{RData, Record, RecordType};
use instant_acme::{Account, ChallengeType, Identifier, NewAccount, NewOrder, RetryPolicy};
use nameplate::env::Env;
use nameplate::sandbox::pebble::{Pebble, PebbleSettings};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use tokio::net::{TcpListener, UdpSocket};
use tokio_util::task::AbortOnDropHandle;

const HOST: &str = "support.acme.test";

/// A DNS server to which every name has the one address 127.0.0.1.
async fn everything_is_here() -> (SocketAddr, AbortOnDropHandle<()>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let mut buffer = [0; 4096];
        while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
            let Ok(query) = Message::from_vec(&buffer[..length]) else { continue };
            let mut answer = Message::new(query.metadata.id, MessageType::Response, OpCode::Query);
            for asked in &query.queries {
                answer.add_query(asked.clone());
                if asked.query_type() == RecordType::A {
                    answer.add_answer(Record::from_rdata(asked.name().clone(), 1, RData::A(Ipv4Addr::LOCALHOST.into())));
                }
            }
            socket.send_to(&answer.to_vec().unwrap(), from).await.unwrap();
        }
    });
    (address, AbortOnDropHandle::new(serving))
}

#[tokio::test]
async fn pebble_issues_what_its_issuing_root_vouches_for() {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let answer = Arc::new(Mutex::new(String::new()));
    let web = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let http_port = web.local_addr().unwrap().port();
    let told = answer.clone();
    let app = Router::new().route("/.well-known/acme-challenge/{token}", get(async move || told.lock().unwrap().clone()));
    let _web = AbortOnDropHandle::new(tokio::spawn(async move { axum::serve(web, app).await.unwrap() }));
    let (dns, _dns) = everything_is_here().await;

    let dir = tempfile::tempdir().unwrap();
    // No nonce is refused here: the bare client gives up after three tries, which nobody repeats in this test.
    let settings = PebbleSettings { nonces_refused: 0, ..PebbleSettings::new(dir.path(), dns, http_port) };
    let pebble = Pebble::start(&settings, &Env::real()).await.unwrap();
    let root_file = dir.path().join("root.pem");
    std::fs::write(&root_file, pebble.server_root_pem()).unwrap();
    let ask = NewAccount { contact: &[], terms_of_service_agreed: true, only_return_existing: false };
    let builder = Account::builder_with_root(&root_file).unwrap();
    let (account, _) = builder.create(&ask, pebble.directory_url().to_owned(), None).await.unwrap();
    let mut order = account.new_order(&NewOrder::new(&[Identifier::Dns(HOST.to_owned())])).await.unwrap();
    {
        let mut authorizations = order.authorizations();
        let mut authorization = authorizations.next().await.unwrap().unwrap();
        let mut challenge = authorization.challenge(ChallengeType::Http01).unwrap();
        *answer.lock().unwrap() = challenge.key_authorization().as_str().to_owned();
        challenge.set_ready().await.unwrap();
    }
    let retries = RetryPolicy::new().initial_delay(Duration::from_millis(50)).timeout(Duration::from_secs(30));
    order.poll_ready(&retries).await.unwrap();
    let mut params = CertificateParams::new(vec![HOST.to_owned()]).unwrap();
    params.distinguished_name = DistinguishedName::new();
    let csr = params.serialize_request(&KeyPair::generate().unwrap()).unwrap();
    order.finalize_csr(csr.der()).await.unwrap();
    let chain = order.poll_certificate(&retries).await.unwrap();

    let pems: Vec<_> = x509_parser::pem::Pem::iter_from_buffer(chain.as_bytes()).map(Result::unwrap).collect();
    let root_pem = pebble.fetch_issuing_root().await.unwrap();
    let root = x509_parser::pem::parse_x509_pem(root_pem.as_bytes()).unwrap().1;
    let (leaf, intermediate) = (pems[0].parse_x509().unwrap(), pems[1].parse_x509().unwrap());
    assert!(leaf.verify_signature(Some(intermediate.public_key())).is_ok());
    assert!(intermediate.verify_signature(Some(root.parse_x509().unwrap().public_key())).is_ok());
}
