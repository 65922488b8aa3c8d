//! Webhooks over sockets: receivers of every kind, and names that lead inwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use nameplate::app::notify::{Notifier, NotifySettings};
use nameplate::app::webhooks;
use nameplate::model::hook_url::{HookRules, HookUrl};
use nameplate::reach::ReachError;
use nameplate::reach::hook::{HookReply, HookRequest, HookSettings, Hooks as _, HttpHooks};
use nameplate::store::sql;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::rig::Rig;
use crate::support::told::Told;

/// A receiver that does `what` with each connection; how many came.
async fn receiver<F, Fut>(what: F) -> (u16, Arc<AtomicUsize>)
where
    F: Fn(tokio::net::TcpStream) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, came) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&came);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(what(stream));
        }
    });
    (port, came)
}

async fn read_head(stream: &mut tokio::net::TcpStream) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while !text.windows(4).any(|w| w == b"\r\n\r\n") {
        let n = stream.read(&mut buffer).await.unwrap_or(0);
        if n == 0 {
            break;
        }
        text.extend_from_slice(&buffer[..n]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn request() -> HookRequest {
    HookRequest { headers: vec![("webhook-id", "evt_1".to_owned())], body: b"{}".to_vec() }
}

/// Posts to a receiver of this machine, as a sandbox may; the hand moves on when nothing else does.
async fn post(rig: &Rig, url: &str, addresses: &[&str]) -> Result<HookReply, ReachError> {
    let settings = HookSettings { loopback: true, timeout: Duration::from_secs(15) };
    let hooks = HttpHooks::new(&rig.env, settings, Some(rustls::RootCertStore::empty())).unwrap();
    let hook = HookUrl::read(url, &HookRules { loopback: true, ..HookRules::default() }).unwrap();
    let addresses: Vec<_> = addresses.iter().map(|a| a.parse().unwrap()).collect();
    let over = AtomicBool::new(false);
    let pushing = async {
        // Real time for a receiver that answers, then virtual time for one that does not.
        let real = nameplate::env::Env::real();
        real.sleep(Duration::from_millis(400)).await;
        while !over.load(Ordering::SeqCst) {
            rig.hand.advance(Duration::from_secs(1));
            real.sleep(Duration::from_millis(5)).await;
        }
    };
    let request = request();
    tokio::select! {
        answer = hooks.post(&hook, &addresses, &request) => answer,
        () = pushing => unreachable!(),
    }
}

#[tokio::test]
async fn receivers_that_hang_stream_for_ever_or_talk_nonsense_cost_little() {
    let rig = Rig::new(29).await;
    let (port, _) = receiver(|mut s| async move {
        read_head(&mut s).await;
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\ngarbage").await;
    })
    .await;
    assert_eq!(post(&rig, &format!("http://127.0.0.1:{port}/in"), &["127.0.0.1"]).await.unwrap().status, 200);
    let (port, _) = receiver(|mut s| async move {
        read_head(&mut s).await;
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while s.write_all(&[b'x'; 65_536]).await.is_ok() {}
    })
    .await;
    assert_eq!(post(&rig, &format!("http://127.0.0.1:{port}/in"), &["127.0.0.1"]).await.unwrap().status, 200);
    let (port, _) = receiver(|mut s| async move {
        read_head(&mut s).await;
        std::future::pending::<()>().await;
    })
    .await;
    let before = rig.env.now();
    assert!(matches!(
        post(&rig, &format!("http://127.0.0.1:{port}/in"), &["127.0.0.1"]).await,
        Err(ReachError::TimedOut(_))
    ));
    assert!(rig.env.now().since(before) <= Duration::from_secs(20));
    // Headers without end, a byte at a time.
    let (port, _) = receiver(|mut s| async move {
        read_head(&mut s).await;
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\n").await;
        loop {
            if s.write_all(b"x-more: and more\r\n").await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(post(&rig, &format!("http://127.0.0.1:{port}/in"), &["127.0.0.1"]).await.is_err());
    let (port, _) = receiver(|mut s| async move {
        let _ = s.write_all(b"220 mail.example ESMTP\r\n").await;
    })
    .await;
    assert!(matches!(post(&rig, &format!("http://127.0.0.1:{port}/in"), &["127.0.0.1"]).await, Err(ReachError::Http(_))));
    // TLS with a certificate that nobody trusts.
    let (port, _) = receiver(|mut s| async move { drop(s.write_all(b"not TLS at all").await) }).await;
    assert!(matches!(post(&rig, &format!("https://127.0.0.1:{port}/in"), &["127.0.0.1"]).await, Err(ReachError::Tls(_))));
}

#[tokio::test]
async fn a_redirect_inwards_is_not_followed() {
    let rig = Rig::new(30).await;
    let (inside, came) = receiver(|_| async {}).await;
    let (port, _) = receiver(move |mut s| async move {
        read_head(&mut s).await;
        let answer = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:{inside}/admin\r\ncontent-length: 0\r\n\r\n"
        );
        let _ = s.write_all(answer.as_bytes()).await;
    })
    .await;
    assert_eq!(post(&rig, &format!("http://127.0.0.1:{port}/in"), &["127.0.0.1"]).await.unwrap().status, 307);
    assert_eq!(came.load(Ordering::SeqCst), 0);
}

/// B87: a name that leads elsewhere at the time of delivery than when it was added.
#[tokio::test]
async fn a_name_that_turns_inwards_is_refused_at_delivery() {
    let rig = Rig::new(31).await;
    let (port, came) = receiver(|mut s| async move {
        read_head(&mut s).await;
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    })
    .await;
    let settings = HookSettings { loopback: false, timeout: Duration::from_secs(15) };
    let hooks = HttpHooks::new(&rig.env, settings, Some(rustls::RootCertStore::empty())).unwrap();
    let rules = HookRules { ports: vec![443, port], loopback: false };
    let hook = HookUrl::read(&format!("https://hooks.acme.test:{port}/in"), &rules).unwrap();
    for inward in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1", "169.254.169.254", "fd00::1", "0.0.0.0", "100.64.0.1"]
    {
        let answer = hooks.post(&hook, &[inward.parse().unwrap()], &request()).await;
        assert!(matches!(answer, Err(ReachError::Refused(_))), "{inward}: {answer:?}");
    }
    assert_eq!(came.load(Ordering::SeqCst), 0);

    // The same through the whole way: it is told as an error, and nothing is sent.
    let told = Told::on(rig).await;
    let tenant = told.rig.tenant("acme").await;
    told.rig.zones.add("inward.acme.test. 60 IN A 127.0.0.1").unwrap();
    told.webhook_at(Some(&tenant), "https://inward.acme.test/in", &["claimed"]).await;
    told.rig.claim(&tenant, "a.acme.test").await;
    told.number().await;
    let notifier = Notifier::new(told.rig.app.clone(), Arc::new(hooks), None, NotifySettings::default());
    assert_eq!(notifier.round().await.unwrap().tried, 1);
    let said = told.rig.app.store.query(sql("SELECT said FROM deliveries")).await.unwrap()[0].text("said").unwrap();
    assert!(said.contains("not of the public Internet") && !said.contains("127.0.0.1"), "{said}");
}

#[tokio::test]
async fn a_request_is_whole_and_signed_on_the_wire() {
    let rig = Rig::new(32).await;
    let told = Told::on(rig).await;
    let heads = Arc::new(std::sync::Mutex::new(Vec::new()));
    let keep = Arc::clone(&heads);
    let (port, _) = receiver(move |mut s| {
        let keep = Arc::clone(&keep);
        async move {
            let head = read_head(&mut s).await;
            keep.lock().unwrap().push(head);
            let _ = s.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        }
    })
    .await;
    let rules = HookRules { loopback: true, ..HookRules::default() };
    let kinds = ["claimed".to_owned()];
    let new = webhooks::NewWebhook { tenant: None, url: &format!("http://127.0.0.1:{port}/in?a=1"), kinds: &kinds };
    let mut tx = told.rig.app.store.begin().await.unwrap();
    webhooks::add_in(&mut tx, &told.rig.app, &rules, new, "operator").await.unwrap();
    tx.commit().await.unwrap();
    let tenant = told.rig.tenant("acme").await;
    told.rig.claim(&tenant, "a.acme.test").await;
    told.number().await;
    let settings = HookSettings { loopback: true, timeout: Duration::from_secs(15) };
    let hooks = HttpHooks::new(&told.rig.env, settings, Some(rustls::RootCertStore::empty())).unwrap();
    let notifier =
        Notifier::new(told.rig.app.clone(), Arc::new(hooks), None, NotifySettings { rules, ..NotifySettings::default() });
    assert_eq!(notifier.round().await.unwrap().delivered, 1);
    let head = heads.lock().unwrap()[0].to_ascii_lowercase();
    assert!(head.starts_with("post /in?a=1 http/1.1\r\n"), "{head}");
    for line in [
        format!("host: 127.0.0.1:{port}"),
        "content-type: application/json".into(),
        "webhook-id: evt_".into(),
        "webhook-timestamp: 18".into(),
        "webhook-signature: v1,".into(),
        "user-agent: nameplate/".into(),
    ] {
        assert!(head.contains(&line), "{line} in {head}");
    }
}
