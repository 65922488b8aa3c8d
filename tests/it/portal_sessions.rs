//! Sessions: their cookie, how they begin, all the ways they end, and what keeps other sites from using them.

use std::time::Duration;

use axum::body::Body;
use nameplate::app::tokens::{self, Principal};
use nameplate::store::sql;
use tower::ServiceExt as _;

use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};
use crate::support::web::{PUBLIC_URL, Web};

async fn is_in(web: &Web, cookie: &str) -> bool {
    let answer = web.page(cookie, "/domains/add").await;
    assert!(answer.status == 200 || answer.status == 401, "{}", answer.body);
    answer.status == 200
}

#[tokio::test]
async fn the_cookie_is_bound_to_this_host_kept_from_scripts_and_stored_as_a_digest() {
    let web = Web::new(310).await;
    let (tenant, _) = web.tenant("acme").await;
    let link = web.portal_link(&tenant).await;
    let entered = web.post("", &link, "").await;
    let set = entered.header("set-cookie");
    assert!(set.starts_with("__Host-nameplate="), "{set}");
    for flag in ["; Path=/", "; Secure", "; HttpOnly", "; SameSite=Lax", "; Max-Age=43200"] {
        assert!(set.contains(flag), "{flag} in {set}");
    }
    assert!(!set.contains("Domain") && !set.contains("Partitioned"));
    let text = entered.cookie().split_once('=').unwrap().1.to_owned();
    assert_eq!(text.len(), 43);
    let rows = web.rig.app.store.query(sql("SELECT digest FROM sessions")).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert!(!String::from_utf8_lossy(&rows[0].blob("digest").unwrap()).contains(&text));
    // Of two of the same name one was set by somebody else.
    let doubled = format!("{}; __Host-nameplate=x", entered.cookie());
    assert!(!is_in(&web, &doubled).await);
    assert!(is_in(&web, &format!("a=b; {}; c=d", entered.cookie())).await);
    // A token is no session, and a session no token.
    assert!(!is_in(&web, &format!("__Host-nameplate={}", web.operator)).await);
    assert_eq!(web.api(&text, "GET", "/api/v1/domains", None).await.status, 401);
    let basic = web.browser("", "GET", "/domains").header("authorization", format!("Bearer {}", web.operator));
    let page = web.send(basic.body(Body::empty()).unwrap()).await;
    assert_eq!(page.status, 401);
    assert!(page.body.contains("/operator/sign-in?next=%2Fdomains"), "{}", page.body);
    assert!(!page.header("www-authenticate").starts_with("Basic"));
}

#[tokio::test]
async fn a_session_is_new_at_each_sign_in_and_ends_at_sign_out() {
    let web = Web::new(311).await;
    let (tenant, _) = web.tenant("acme").await;
    // Whoever plants a cookie before the sign-in has nothing after it.
    let planted = format!("__Host-nameplate={}", "A".repeat(43));
    let link = web.portal_link(&tenant).await;
    let first = web.post(&planted, &link, "").await.cookie();
    assert!(first != planted && is_in(&web, &first).await && !is_in(&web, &planted).await);
    let link = web.portal_link(&tenant).await;
    let second = web.post(&first, &link, "").await.cookie();
    assert!(second != first && is_in(&web, &second).await && !is_in(&web, &first).await);
    // Signing in as an operator ends it, too.
    let signed_in = web.post(&second, "/operator/sign-in", &format!("token={}", web.operator)).await;
    let operator = signed_in.cookie();
    assert!(is_in(&web, &operator).await && !is_in(&web, &second).await);
    let csrf = web.csrf(&operator).await;
    assert_eq!(web.post(&operator, "/sign-out", "csrf=00").await.status, 403);
    assert!(is_in(&web, &operator).await);
    let out = web.post(&operator, "/sign-out", &format!("csrf={csrf}")).await;
    assert_eq!(out.status, 200);
    assert!(out.header("set-cookie").starts_with("__Host-nameplate=; Max-Age=0"), "{}", out.header("set-cookie"));
    assert!(out.body.contains("You are signed out") && !out.body.contains("Sign out"), "{}", out.body);
    assert!(!is_in(&web, &operator).await);
}

#[tokio::test]
async fn sessions_end_by_themselves_and_with_what_they_rest_on() {
    let web = Web::new(312).await;
    let (tenant, _) = web.tenant("acme").await;
    let hours = |n: u64| Duration::from_secs(n * 3600);
    // Used, it lasts; unused, or after twelve hours, it does not. A page that looks again by itself is no use.
    let used = web.admin(&tenant).await;
    let idle = web.admin(&tenant).await;
    for _ in 0..13 {
        web.rig.hand.advance(Duration::from_secs(50 * 60));
        assert!(is_in(&web, &used).await);
    }
    assert!(!is_in(&web, &idle).await);
    web.rig.hand.advance(hours(2));
    assert!(!is_in(&web, &used).await);
    let open = web.admin(&tenant).await;
    for _ in 0..2 {
        web.rig.hand.advance(Duration::from_secs(31 * 60));
        let refresh = web.browser(&open, "GET", "/domains").header("x-nameplate-refresh", "1");
        web.send(refresh.body(Body::empty()).unwrap()).await;
    }
    assert!(!is_in(&web, &open).await);
    // The token is taken back.
    let minted = tokens::mint(&web.rig.app.store, &web.rig.env, &Principal::Operator, "x", None).await.unwrap();
    let form = format!("token={}", minted.text.expose_str().unwrap());
    let operator = web.post("", "/operator/sign-in", &form).await.cookie();
    assert!(is_in(&web, &operator).await);
    tokens::revoke(&web.rig.app.store, &web.rig.env, &minted.id).await.unwrap();
    assert!(!is_in(&web, &operator).await);
    // The tenant leaves, in every way it can.
    let admin = web.admin(&tenant).await;
    for status in ["suspended", "moving", "deleted"] {
        let stmt = sql("UPDATE tenants SET status = $1 WHERE id = $2").bind(status).bind(tenant.as_str());
        web.rig.app.store.execute(stmt).await.unwrap();
        assert!(!is_in(&web, &admin).await, "{status}");
    }
}

#[tokio::test]
async fn nobody_elses_page_sends_our_forms() {
    let web = Web::new(313).await;
    let (tenant, _) = web.tenant("acme").await;
    let (cookie, other) = (web.admin(&tenant).await, web.admin(&tenant).await);
    let id = web.rig.claim(&tenant, "support.acme.test").await;
    let (csrf, foreign) = (web.csrf(&cookie).await, web.csrf(&other).await);
    assert_ne!(csrf, foreign);
    let link = web.portal_link(&tenant).await;
    let forms = [
        format!("/domains/{id}/check"),
        format!("/domains/{id}/remove"),
        format!("/domains/{id}/hand-off"),
        "/domains/add".into(),
        "/sign-out".into(),
    ];
    let send = async |path: &str, headers: &[(&str, &str)], body: String| {
        let mut request = web.browser(&cookie, "POST", path).header("content-type", "application/x-www-form-urlencoded");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        web.send(request.body(Body::from(body)).unwrap()).await
    };
    let strange: [&[(&str, &str)]; 8] = [
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[("origin", "https://portal.example.evil.example")],
        &[("origin", "http://portal.example")],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("origin", PUBLIC_URL), ("sec-fetch-site", "cross-site")],
        &[],
    ];
    for headers in strange {
        for path in forms.iter().map(String::as_str).chain([link.as_str(), "/operator/sign-in"]) {
            let body = if path == "/operator/sign-in" { format!("token={}", web.operator) } else { format!("csrf={csrf}") };
            let answer = send(path, headers, body).await;
            assert_eq!(
                (answer.status.as_u16(), answer.header("set-cookie")),
                (403, ""),
                "{path} {headers:?}: {}",
                answer.body
            );
        }
    }
    for path in &forms {
        for token in [foreign.as_str(), "", "zz", "é", &"0".repeat(64), &csrf[1..]] {
            let answer = send(path, &[("origin", PUBLIC_URL)], format!("csrf={token}")).await;
            assert_eq!(answer.status, 403, "{path} {token}: {}", answer.body);
        }
        let missing = send(path, &[("origin", PUBLIC_URL)], String::new()).await;
        assert_eq!(missing.status, 422, "{path}: {}", missing.body);
    }
    // Nothing of all that did anything.
    assert_eq!(web.page("", &link).await.status, 200);
    assert_eq!(web.rig.domain_text(&id, "claim").await.unwrap(), "awaiting_dns");
    assert!(is_in(&web, &cookie).await);
}

#[tokio::test]
async fn operators_sign_in_with_a_token_that_works_and_are_slowed_down_when_guessing() {
    let web = Web::paced(314, 1_000, 10).await;
    let (_, tenant_token) = web.tenant("acme").await;
    let form = web.page("", "/operator/sign-in?next=/domains/add").await;
    assert!(form.body.contains("name=\"next\" value=\"/domains/add\"") && form.body.contains("type=\"password\""));
    let wrong = web.post("", "/operator/sign-in", &format!("token={tenant_token}&next=/x")).await;
    assert_eq!((wrong.status.as_u16(), wrong.header("set-cookie")), (422, ""));
    assert!(!wrong.body.contains(&tenant_token) && wrong.body.contains("name=\"next\" value=\"/x\""), "{}", wrong.body);
    for next in ["//evil.example", "https://evil.example", "/\\evil.example", "/%0d%0ax"] {
        let answer = web.post("", "/operator/sign-in", &format!("token={}&next={next}", web.operator)).await;
        assert_eq!(answer.status, 303);
        assert!(!answer.header("location").contains("evil"), "{}", answer.header("location"));
        assert!(answer.header("location").starts_with(PUBLIC_URL));
    }
    let there = web.post("", "/operator/sign-in", &format!("token={}&next=/domains/add", web.operator)).await;
    assert_eq!(there.header("location"), format!("{PUBLIC_URL}/domains/add"));
    // Guesses count together with those at the API, however often a right token is shown in between.
    for _ in 0..5 {
        assert_eq!(web.post("", "/operator/sign-in", "token=npo_guess").await.status, 422);
    }
    for _ in 0..4 {
        assert_eq!(web.api("npo_guess", "GET", "/api/v1/domains", None).await.status, 401);
    }
    assert_eq!(web.post("", "/operator/sign-in", &format!("token={}", web.operator)).await.status, 303);
    let slowed = web.post("", "/operator/sign-in", "token=npo_guess").await;
    assert_eq!((slowed.status.as_u16(), slowed.header("retry-after")), (429, "6"));
    assert_eq!(web.api("npo_guess", "GET", "/api/v1/domains", None).await.problem(), (429, "too_many_requests".into()));
    // Neighbours behind one address do not shut each other out.
    assert_eq!(web.post("", "/operator/sign-in", &format!("token={}", web.operator)).await.status, 303);
    web.rig.hand.advance(Duration::from_secs(61));
    assert_eq!(web.post("", "/operator/sign-in", "token=npo_guess").await.status, 422);
}

#[tokio::test]
async fn pages_are_framed_by_whom_the_configuration_names_and_by_nobody_else() {
    let plain = Web::new(315).await;
    let page = plain.page("", "/").await;
    assert_eq!(page.header("x-frame-options"), "DENY");
    let policy = page.header("content-security-policy");
    for part in
        ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "base-uri 'none'", "frame-ancestors 'none'"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains('*'));
    let framed = Web::configured(
        316,
        "[portal]\nframe_ancestors = [\"https://app.example.com\"]\n[brand]\nname = \"Acme & Sons\"\naccent = \"#ffe600\"\n\
         logo_url = \"https://cdn.example/l.svg\"\nsupport = \"mailto:help@example.com\"\n",
    )
    .await;
    let (tenant, _) = framed.tenant("acme").await;
    let link = framed.portal_link(&tenant).await;
    let page = framed.page("", &link).await;
    assert_eq!(page.header("x-frame-options"), "");
    let policy = page.header("content-security-policy");
    assert!(policy.contains("frame-ancestors 'self' https://app.example.com"), "{policy}");
    assert!(policy.contains("img-src 'self' https://cdn.example;"), "{policy}");
    assert!(page.body.contains("Acme &#38; Sons") && page.body.contains("mailto:help@example.com"), "{}", page.body);
    let entered = framed.post("", &link, "").await;
    assert!(entered.header("set-cookie").contains("; Secure; HttpOnly; SameSite=None; Partitioned"));
    // An operator's pages are framed by nobody.
    let operators = framed.page("", "/operator/sign-in").await;
    assert_eq!(operators.header("x-frame-options"), "DENY");
    assert!(operators.header("content-security-policy").contains("frame-ancestors 'none'"));
    let css = framed.page("", "/assets/brand.css").await;
    assert!(css.header("content-type").starts_with("text/css") && css.body.contains("#ffe600"), "{}", css.body);
    // Forged hosts change nothing.
    let forged = framed
        .browser("", "GET", "/domains")
        .header("host", "evil.example")
        .header("x-forwarded-host", "evil.example")
        .header("x-forwarded-proto", "http");
    let answer = framed.send(forged.body(Body::empty()).unwrap()).await;
    assert!(answer.status == 401 && !answer.body.contains("evil"), "{}", answer.body);
}

#[tokio::test]
async fn the_portal_reads_and_writes_alike_on_postgresql() {
    let test = TestStore::blank(Kind::Postgres).await;
    let web = Web::on(Rig::on(317, &test.url).await, "").await;
    let (tenant, _) = web.tenant("acme").await;
    let id = web.rig.claim(&tenant, "support.acme.test").await;
    let cookie = web.admin(&tenant).await;
    for path in ["/domains", "/domains?q=SUPP&state=waiting", "/domains?q=%25&state=all"] {
        let list = web.page(&cookie, path).await;
        assert_eq!(list.status, 200, "{path}");
        assert_eq!(list.body.contains("support.acme.test"), !path.contains("%25"), "{path}");
    }
    assert!(web.page(&cookie, "/domains?q=%00").await.body.contains("Nothing found"));
    for path in ["", "/history", "/remove"] {
        assert_eq!(web.page(&cookie, &format!("/domains/{id}{path}")).await.status, 200, "{path}");
    }
    for path in [format!("/domains/{id}/live"), "/domains/live?after=7".to_owned()] {
        let request = web.browser(&cookie, "GET", &path).body(Body::empty()).unwrap();
        assert_eq!(web.router.clone().oneshot(request).await.unwrap().status(), 200, "{path}");
    }
    let csrf = web.csrf(&cookie).await;
    let shared = web.post(&cookie, &format!("/domains/{id}/hand-off"), &format!("csrf={csrf}")).await;
    let url = shared.body.split("id=\"link\">").nth(1).unwrap().split('<').next().unwrap();
    assert_eq!(web.page("", url.strip_prefix(PUBLIC_URL).unwrap()).await.status, 200);
    let hostile = web.post(&cookie, "/domains/add", &format!("csrf={csrf}&names=a%00b.acme.test")).await;
    assert_eq!(hostile.status, 422);
    assert_eq!(web.post(&cookie, "/sign-out", &format!("csrf={csrf}")).await.status, 200);
    assert!(!is_in(&web, &cookie).await);
    web.live.close();
    test.remove().await;
}
