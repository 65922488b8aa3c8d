//! Pages that are told of changes: of their own and of nothing else, as long as their reader may read.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::StatusCode;
use futures::StreamExt as _;
use nameplate::store::sql;
use tower::ServiceExt as _;

use crate::support::stores::until;
use crate::support::web::Web;

/// An open stream of events.
struct Stream(BodyDataStream);

impl Stream {
    /// The next chunk, if one is there by now.
    async fn peek(&mut self) -> Option<String> {
        let next = tokio::time::timeout(Duration::from_millis(200), self.0.next()).await.ok()?;
        Some(next.map_or_else(|| "END".to_owned(), |chunk| String::from_utf8(chunk.unwrap().to_vec()).unwrap()))
    }

    /// Moves time on until something is said.
    async fn next(&mut self, web: &Web) -> String {
        for _ in 0..100 {
            if let Some(said) = self.peek().await {
                return said;
            }
            web.rig.hand.advance(Duration::from_secs(1));
        }
        panic!("nothing was said");
    }
}

async fn open(web: &Web, cookie: &str, path: &str) -> Result<Stream, StatusCode> {
    let request = web.browser(cookie, "GET", path).body(Body::empty()).unwrap();
    let answer = web.router.clone().oneshot(request).await.unwrap();
    if answer.status() != 200 {
        return Err(answer.status());
    }
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    assert_eq!(answer.headers()["cache-control"], "no-store");
    Ok(Stream(answer.into_body().into_data_stream()))
}

/// What the relay does.
async fn number(web: &Web) {
    let rows = web.rig.app.store.query(sql("SELECT id FROM events WHERE position IS NULL ORDER BY id")).await.unwrap();
    for row in rows {
        let stmt = sql("UPDATE events SET position = (SELECT COALESCE(MAX(position), 0) + 1 FROM events) WHERE id = $1");
        web.rig.app.store.execute(stmt.bind(row.text("id").unwrap())).await.unwrap();
    }
}

#[tokio::test]
async fn a_page_is_told_when_its_own_domain_moves_and_of_nothing_else() {
    let web = Web::new(330).await;
    let (acme, _) = web.tenant("acme").await;
    let (other, _) = web.tenant("other").await;
    let (mine, beside) = (web.rig.claim(&acme, "a.acme.test").await, web.rig.claim(&acme, "b.acme.test").await);
    let theirs = web.rig.claim(&other, "c.other.test").await;
    let admin = web.admin(&acme).await;
    number(&web).await;
    let page = web.page(&admin, &format!("/domains/{mine}")).await;
    let live = page.body.split("data-live=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let list = web.page(&admin, "/domains").await;
    let list_live = list.body.split("data-live=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let (mut one, mut all) = (open(&web, &admin, &live).await.unwrap(), open(&web, &admin, &list_live).await.unwrap());
    for stream in [&mut one, &mut all] {
        assert_eq!(stream.peek().await.unwrap(), "retry: 5000\n\n");
    }
    // Somebody else's: nobody is told.
    nameplate::app::remove::remove(&web.rig.app, &theirs, "x").await.unwrap();
    number(&web).await;
    for _ in 0..3 {
        web.rig.hand.advance(Duration::from_secs(1));
        assert_eq!((one.peek().await, all.peek().await), (None, None));
    }
    // One's own, but another domain: the list is told.
    nameplate::app::remove::remove(&web.rig.app, &beside, "x").await.unwrap();
    number(&web).await;
    assert_eq!(all.next(&web).await, "event: changed\ndata: {}\n\n");
    assert_eq!(one.peek().await, None);
    nameplate::app::remove::remove(&web.rig.app, &mine, "x").await.unwrap();
    number(&web).await;
    assert_eq!(one.next(&web).await, "event: changed\ndata: {}\n\n");
    // What moved while the page was on its way is told at once.
    let mut late = open(&web, &admin, &live).await.unwrap();
    assert_eq!(late.peek().await.unwrap(), "retry: 5000\n\nevent: changed\ndata: {}\n\n");
    // Silence is filled with comments.
    let mut quiet = open(&web, &admin, &format!("/domains/{mine}/live?after=999")).await.unwrap();
    assert_eq!(quiet.peek().await.unwrap(), "retry: 5000\n\n");
    assert_eq!(quiet.next(&web).await, ": still here\n\n");
    for (cookie, path, status) in [
        ("", live.as_str(), StatusCode::UNAUTHORIZED),
        (&admin, &format!("/domains/{theirs}/live"), StatusCode::NOT_FOUND),
        ("", "/domains/live", StatusCode::UNAUTHORIZED),
    ] {
        assert_eq!(open(&web, cookie, path).await.err(), Some(status), "{path}");
    }
}

#[tokio::test]
async fn a_stream_ends_with_its_session_and_when_the_process_drains() {
    let web = Web::new(331).await;
    let (acme, token) = web.tenant("acme").await;
    let id = web.rig.claim(&acme, "a.acme.test").await;
    let (leaving, staying) = (web.admin(&acme).await, web.admin(&acme).await);
    let body = serde_json::json!({ "domain": id });
    let made = web.api(&token, "POST", "/api/v1/hand-off-links", Some(body)).await.json();
    let url = made["url"].as_str().unwrap();
    let hand_off = format!("{}/live", url.strip_prefix(crate::support::web::PUBLIC_URL).unwrap());
    let live = format!("/domains/{id}/live?after=999");
    let mut streams = Vec::new();
    for (cookie, path) in [(leaving.as_str(), live.as_str()), (&staying, &live), ("", &format!("{hand_off}?after=999"))] {
        let mut stream = open(&web, cookie, path).await.unwrap();
        assert_eq!(stream.peek().await.unwrap(), "retry: 5000\n\n");
        streams.push(stream);
    }
    let csrf = web.csrf(&leaving).await;
    assert_eq!(web.post(&leaving, "/sign-out", &format!("csrf={csrf}")).await.status, 200);
    let revoke = format!("/api/v1/hand-off-links/{}", made["id"].as_str().unwrap());
    assert_eq!(web.api(&token, "DELETE", &revoke, None).await.status, 200);
    assert_eq!(streams[0].next(&web).await, "event: over\ndata: {}\n\n");
    assert_eq!(streams[0].peek().await.unwrap(), "END");
    assert_eq!(streams[2].next(&web).await, "event: over\ndata: {}\n\n");
    assert_eq!(streams[1].next(&web).await, ": still here\n\n");
    web.live.close();
    assert_eq!(streams[1].peek().await.unwrap(), "END");
    assert_eq!(open(&web, &staying, &live).await.err(), Some(StatusCode::SERVICE_UNAVAILABLE));
}

#[tokio::test]
async fn places_are_bounded_and_given_back() {
    let web = Web::configured(332, "[portal]\nlive_connections = 2\n").await;
    let (acme, _) = web.tenant("acme").await;
    let admin = web.admin(&acme).await;
    let path = "/domains/live?after=999";
    let (one, two) = (open(&web, &admin, path).await.unwrap(), open(&web, &admin, path).await.unwrap());
    assert_eq!(open(&web, &admin, path).await.err(), Some(StatusCode::SERVICE_UNAVAILABLE));
    drop(one);
    until("a place is free again", async || open(&web, &admin, path).await.is_ok()).await;
    drop(two);
}
