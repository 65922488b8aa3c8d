//! The listener of API and pages: nobody who keeps a connection open keeps the process.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::support::web::Web;

#[tokio::test]
async fn a_connection_that_is_stuck_is_cut_off_once_the_drain_is_over() {
    let web = Web::new(41).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let told = async {
        let _ = stopped.await;
    };
    let server = tokio::spawn(nameplate::web::serve(listener, web.router.clone(), web.rig.env.clone(), told));
    // A request whose body never comes: its head is read, so nothing but the drain's end ends it.
    let mut stuck = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /api/v1/tenants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: 9\r\nExpect: 100-continue\r\n\r\n",
        web.operator
    );
    stuck.write_all(head.as_bytes()).await.unwrap();
    let mut seen = [0; 25];
    stuck.read_exact(&mut seen).await.unwrap();
    assert!(seen.starts_with(b"HTTP/1.1 100 "), "the request is under way");
    stop.send(()).unwrap();
    // The body's own time ends later than the drain's.
    let drained = web.rig.env.now() + Duration::from_secs(10);
    while web.rig.hand.next_wake().is_none_or(|at| at > drained) {
        assert!(!server.is_finished(), "the running request has time to finish");
        tokio::task::yield_now().await;
    }
    web.rig.hand.advance(Duration::from_secs(10));
    server.await.unwrap().unwrap();
    let mut rest = Vec::new();
    // Closed or reset: either way it is over.
    let _ = stuck.read_to_end(&mut rest).await;
    assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
}
