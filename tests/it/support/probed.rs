//! What the probe of a real edge sees where its listener shows another certificate than it should.

use std::sync::Arc;

use nameplate::app::App;
use nameplate::edge::certificates::CertificateBook;
use nameplate::edge::probe::Prober;
use nameplate::env::Env;
use nameplate::feed::replica::Replica;
use nameplate::feed::wire::Exception;
use nameplate::model::feed::{CertificateEntry, Material};
use nameplate::model::feed_apply::Served;
use nameplate::model::id::{CertificateId, EdgeId};
use nameplate::model::moment::Moment;
use nameplate::store::edges::{self, NotServed};
use nameplate::store::sql;
use nameplate::vault::{Context, Sealed};
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A chain and its PKCS#8 key.
pub struct Shown {
    pub chain: String,
    pub key: Vec<u8>,
}

/// The certificate as the control plane stores it.
pub async fn stored(app: &App, certificate: &str) -> Shown {
    let stmt = sql("SELECT chain, sealed_key, COALESCE(order_id, id) AS sealed_for FROM certificates WHERE id = $1");
    let rows = app.store.query(stmt.bind(certificate)).await.unwrap();
    let sealed = Sealed::try_from(rows[0].blob("sealed_key").unwrap()).unwrap();
    let context = Context::new("certificate-key", &rows[0].text("sealed_for").unwrap());
    let key = app.vault.open(&context, &sealed).unwrap().expose().to_vec();
    Shown { chain: rows[0].text("chain").unwrap(), key }
}

/// What an edge tells that has the certificate `id` for `name` while its listener shows this one.
pub async fn seen_instead(env: &Env, name: &str, id: &CertificateId, shown: Shown) -> Exception {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(shown.chain.as_bytes()).collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(shown.key));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap();
    let visitors = tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        while let Ok((stream, _)) = listener.accept().await {
            drop(acceptor.accept(stream).await);
        }
    });
    let replica = Arc::new(Replica::new(env.clone()));
    let book = Arc::new(CertificateBook::new(Arc::clone(&replica)));
    let prober = Prober::new(own, replica, book, env.clone()).unwrap();
    let of_the_feed = KeyPair::generate().unwrap();
    let expected = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&of_the_feed).unwrap().pem();
    let material = Material {
        names: vec![name.to_owned()],
        chain: expected,
        sealed_key: Vec::new(),
        serial: "01".to_owned(),
        not_after: Moment::NEVER,
        platform: false,
    };
    let entry = CertificateEntry { id: id.clone(), version: 1, material: Some(material) };
    let seen = prober.look(&Served { hostname: name.into(), certificate: Arc::new(entry) }).await;
    visitors.abort();
    seen.expect("the listener shows another certificate")
}

/// An edge tells what it has and does not serve, and nothing else changed.
pub async fn tells(app: &App, edge: &str, exceptions: &[Exception]) {
    let edges = edges::page(&app.store, "", 100).await.unwrap();
    let edge = edges.into_iter().find(|e| e.name == edge).expect("no such edge");
    let id: EdgeId = edge.id;
    let not_served = |e: &Exception| NotServed {
        certificate: e.certificate_id.clone(),
        observed: e.observed.clone(),
        serial: e.served(),
    };
    let exceptions: Vec<_> = exceptions.iter().map(not_served).collect();
    let mut tx = app.store.begin().await.unwrap();
    edges::ack(&mut tx, &id, edge.cursor, &exceptions, app.env.now()).await.unwrap();
    tx.commit().await.unwrap();
}
