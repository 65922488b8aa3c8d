//! The operator's pages: for operators alone, whole without JavaScript, small, and safe from what others typed.

use std::time::Duration;

use nameplate::app::tenants::{self, NewTenant};
use nameplate::store::{issuers, sql};
use nameplate::web::ROUTES;

use crate::support::fleet_seed;
use crate::support::rig::{Rig, START};
use crate::support::stores::{Kind, TestStore};
use crate::support::web::{Answer, Web};

/// A page as its reader's browser gets it.
async fn page(web: &Web, cookie: &str, path: &str) -> Answer {
    web.page(cookie, path).await
}

/// The only script there is.
const OUR_SCRIPT: &str = "<script src=\"/assets/portal.js\" defer></script>";

/// Headings, labels and tables as a screen reader needs them, and nothing that the policy would block.
#[track_caller]
fn check_whole(path: &str, answer: &Answer) {
    let html = &answer.body;
    assert_eq!(answer.status, 200, "{path}: {html}");
    assert!(answer.header("content-type").starts_with("text/html"));
    assert!(html.len() < 60_000, "{path} is {} bytes", html.len());
    assert!(html.matches("<script").count() == 1 && html.contains(OUR_SCRIPT) && !html.contains("style=\""), "{path}");
    for once in ["<h1", "<title>Fleet", "<main", "aria-current=\"page\"", "/assets/operator.css"] {
        let expected = usize::from(once != "<title>Fleet" || path == "/operator");
        assert_eq!(html.matches(once).count(), expected, "{once} in {path}");
    }
    let values = |name: &str| -> Vec<&str> {
        html.split(&format!("{name}=\"")).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0)).collect()
    };
    let ids = values(" id");
    for id in &ids {
        assert_eq!(ids.iter().filter(|other| *other == id).count(), 1, "id {id} twice in {path}");
    }
    for target in values("aria-labelledby").into_iter().chain(values(" for")) {
        assert!(ids.contains(&target), "nothing in {path} has the id {target}");
    }
    for table in html.split("<table").skip(1) {
        let table = table.split("</table>").next().unwrap();
        assert!(table.contains("<caption") && table.contains("scope=\"col\""), "a table of {path} has no headers: {table}");
    }
    for svg in html.split("<svg").skip(1) {
        let open = svg.split('>').next().unwrap();
        assert!(open.contains("aria-hidden=\"true\"") || open.contains("role=\"img\" aria-label=\""), "{path}: {open}");
    }
}

fn paths() -> Vec<&'static str> {
    ROUTES
        .iter()
        .filter(|r| r.guarded && r.method == "get")
        .map(|r| r.path)
        .filter(|path| path.starts_with("/operator"))
        .collect()
}

#[tokio::test]
async fn tenants_find_nothing_at_any_of_these_addresses() {
    let web = Web::new(51).await;
    let (acme, _) = web.tenant("acme").await;
    let id = web.rig.claim(&acme, "support.acme.test").await;
    let admin = web.admin(&acme).await;
    let nothing = page(&web, &admin, "/operator/no/such/page").await;
    assert_eq!(nothing.status, 404);
    assert!(paths().len() >= 8);
    for path in paths() {
        for id in [id.as_str(), acme.as_str(), "dom_00000000000000000000000000000000", "x"] {
            for query in ["", "?q=acme", "?reason=serving", "?cursor=x", "?nonsense=1"] {
                let path = format!("{}{query}", path.replace("{id}", id));
                let answer = page(&web, &admin, &path).await;
                // The frame around it names who reads; what is said is the same.
                let said = |answer: &Answer| answer.body.split("<main").nth(1).unwrap().to_owned();
                assert_eq!((answer.status, said(&answer)), (nothing.status, said(&nothing)), "{path}");
            }
        }
    }
    let sent: Vec<_> =
        ROUTES.iter().filter(|r| r.guarded && r.method == "post" && r.path.starts_with("/operator")).collect();
    assert!(sent.len() >= 3);
    let csrf = web.csrf(&admin).await;
    for route in sent {
        let form = format!("csrf={csrf}&reason=x&slug=acme&names_lost=0");
        let answer = web.post(&admin, &route.path.replace("{id}", id.as_str()), &form).await;
        assert_eq!(answer.status, 404, "{}", route.path);
    }
    for path in paths() {
        assert_eq!(page(&web, "", &path.replace("{id}", id.as_str())).await.status, 401, "{path}");
    }
}

#[tokio::test]
async fn an_empty_fleet_has_whole_pages() {
    let web = Web::new(52).await;
    let operator = web.signed_in_operator().await;
    for path in paths().into_iter().filter(|path| !path.contains("{id}")) {
        check_whole(path, &page(&web, &operator, path).await);
    }
    let fleet = page(&web, &operator, "/operator").await.body;
    assert!(fleet.contains("No claim is open") && fleet.contains("Nothing is under way or stuck"), "{fleet}");
    for (path, status) in [
        ("/operator/domains?reason=no_such_reason", 404),
        ("/operator/domains?acts=somebody", 404),
        ("/operator/domains?reason=serving&acts=ca", 404),
        ("/operator/domains?reason=serving&cursor=x", 422),
        ("/operator/domains?q=a&cursor=x", 422),
        ("/operator/domains?nonsense=1", 400),
        ("/operator/domains/x", 404),
        ("/operator/domains/dom_00000000000000000000000000000000", 404),
        ("/operator/tenants/ten_00000000000000000000000000000000", 404),
        ("/operator/expiry?cursor=1", 422),
        ("/operator/expiry?cursor=1:x", 422),
        ("/operator/domains?reason=serving&cursor=1:%00", 422),
        ("/operator/domains?q=a&cursor=%00:dom_00000000000000000000000000000000", 422),
        ("/operator/tenants?cursor=%00", 422),
        ("/operator/tenants/ten_00000000000000000000000000000000?cursor=x", 422),
    ] {
        assert_eq!(page(&web, &operator, path).await.status, status, "{path}");
    }
    let style = web.api("", "GET", "/assets/operator.css", None).await;
    assert!(style.header("content-type").starts_with("text/css"));
}

#[tokio::test]
async fn the_overview_tells_what_is_stuck_and_what_is_served() {
    let web = Web::new(53).await;
    let (acme, _) = web.tenant("acme").await;
    let served = web.rig.claim(&acme, "support.acme.test").await;
    web.rig.publish(&served, "support.acme.test").await;
    web.rig.until_active(&served, Duration::from_secs(3600)).await;
    let stuck = web.rig.claim(&acme, "shop.acme.test").await;
    web.rig.pass(Duration::from_secs(20)).await;
    let operator = web.signed_in_operator().await;
    let fleet = page(&web, &operator, "/operator").await;
    check_whole("/operator", &fleet);
    for text in [
        "2 open claims, 1 served",
        "txt_missing",
        &format!("/operator/domains/{stuck}"),
        "Served: 1",
        "The tenant’s: 1",
        "299 of 300",
    ] {
        assert!(fleet.body.contains(text), "{text} is not in {}", fleet.body);
    }
    let one = page(&web, &operator, &format!("/operator/domains/{served}")).await;
    check_whole("/operator/domains/{id}", &one);
    for text in [
        "Visitors are served over HTTPS.",
        "held, term 1",
        "this claim",
        "serves it",
        "The certificate lasts until",
        "generation",
    ] {
        assert!(one.body.to_lowercase().contains(&text.to_lowercase()), "{text} is not in {}", one.body);
    }
    // The certificate ends with nobody renewing it: ours to solve, and said so.
    web.rig.hand.advance(Duration::from_secs(100 * 86_400));
    let operator = web.signed_in_operator().await;
    let fleet = page(&web, &operator, "/operator").await.body;
    assert!(fleet.contains("1 name is live with a certificate that has ended."), "{fleet}");
    assert!(fleet.contains("0 edges count and 1 must"), "{fleet}");
    let calendar = page(&web, &operator, "/operator/expiry").await;
    check_whole("/operator/expiry", &calendar);
    assert!(calendar.body.contains("<dt>ended before today</dt><dd>1</dd>"), "{}", calendar.body);
    let one = page(&web, &operator, &format!("/operator/domains/{served}")).await.body;
    assert!(one.contains("Our move") && one.contains("The certificate ended at"), "{one}");
}

const HOSTILE: &str = "\"><script>alert('x')</script><img src=x onerror=alert(1)>";

#[tokio::test]
async fn what_others_typed_stays_text() {
    let web = Web::new(54).await;
    let new = NewTenant { slug: "evil", name: Some(HOSTILE) };
    let evil = tenants::add(&web.rig.app.store, &web.rig.env, new, |_| None, HOSTILE).await.unwrap().id;
    let id = web.rig.claim(&evil, "support.acme.test").await;
    web.rig.publish(&id, "support.acme.test").await;
    web.rig.until_active(&id, Duration::from_secs(3600)).await;
    for (text, value) in [
        ("UPDATE domains SET hostname = $1, check_asked_by = $1, check_asked_at = 1, lease_owner = $1", HOSTILE),
        ("UPDATE edges SET name = $1", HOSTILE),
        ("UPDATE orders SET problem = $1, url = $1", HOSTILE),
        ("UPDATE issuers SET name = $1, account_url = NULL, account_problem = $1", HOSTILE),
        ("UPDATE events SET cause = $1, actor = $1, kind = $1", HOSTILE),
        ("UPDATE holdings SET hostname = $1", HOSTILE),
        (
            "INSERT INTO rollout_exceptions (certificate_id, edge_id, observed, at) SELECT c.id, e.id, $1, 0 FROM certificates c CROSS JOIN edges e",
            HOSTILE,
        ),
        ("UPDATE certificates SET serial = $1", HOSTILE),
        ("INSERT INTO domain_words (word, domain_id) SELECT 'evil' || $1, id FROM domains", HOSTILE),
    ] {
        web.rig.app.store.execute(sql(text).bind(value)).await.unwrap();
    }
    let operator = web.signed_in_operator().await;
    let search = format!("/operator/domains?{}", nameplate::web::query(&[("q", HOSTILE)]));
    let mut seen = 0;
    for path in paths() {
        let path =
            path.replace("/domains/{id}", &format!("/domains/{id}")).replace("/tenants/{id}", &format!("/tenants/{evil}"));
        for path in [path.as_str(), "/operator/domains?q=evil", "/operator/domains?reason=serving", &search] {
            let answer = page(&web, &operator, path).await;
            check_whole(path, &answer);
            let html = &answer.body;
            assert!(!html.contains("<img") && !html.contains(HOSTILE), "{path}: {html}");
            seen += html.matches("&#60;script&#62;").count();
        }
    }
    assert!(seen > 20, "{seen}");
    // What nobody can see, or what turns its neighbours around, is spelled out.
    let unseen = "\u{202e}gro.live\u{200b}";
    for text in [
        "UPDATE domains SET check_asked_by = $1, lease_owner = $1",
        "UPDATE edges SET name = $1",
        "UPDATE orders SET problem = $1, url = $1",
        "UPDATE issuers SET account_problem = $1",
        "UPDATE events SET cause = $1, actor = $1, kind = $1",
        "UPDATE rollout_exceptions SET observed = $1",
        "UPDATE tenants SET name = $1",
    ] {
        web.rig.app.store.execute(sql(text).bind(unseen)).await.unwrap();
    }
    let search = format!("/operator/domains?{}", nameplate::web::query(&[("q", unseen)]));
    let mut spelled = 0;
    for path in paths().into_iter().chain([search.as_str()]) {
        let path =
            path.replace("/domains/{id}", &format!("/domains/{id}")).replace("/tenants/{id}", &format!("/tenants/{evil}"));
        let html = page(&web, &operator, &path).await.body;
        assert!(!html.contains(['\u{202e}', '\u{200b}']), "{path}: {html}");
        spelled += html.matches("[U+202E]").count();
    }
    assert!(spelled > 10, "{spelled}");
}

#[tokio::test]
async fn no_page_grows_with_the_fleet() {
    let web = Web::new(55).await;
    let operator = web.signed_in_operator().await;
    let issuer = issuers::list(&web.rig.app.store).await.unwrap().remove(0);
    fleet_seed::fill(&web.rig.app.store, &fleet_seed::parts(), (6_000, 40), issuer.id.as_str(), START).await;
    let some = |n: u32| format!("{n:032}");
    let mut walked = 0;
    for path in paths() {
        let domains = [0, 66, 69, 83, 90, 91, 92, 97, 99];
        let ids = if path.contains("tenants/{id}") { vec![0, 39] } else { domains.to_vec() };
        for id in ids.into_iter().take(if path.contains("{id}") { 9 } else { 1 }) {
            let prefix = if path.contains("tenants") { "ten_" } else { "dom_" };
            let path = path.replace("{id}", &format!("{prefix}{}", some(id)));
            check_whole(&path, &page(&web, &operator, &path).await);
            walked += 1;
        }
    }
    assert!(walked > 15);
    // Every list can be walked to its end by its links.
    for first in [
        "/operator/domains?reason=cname_points_elsewhere",
        "/operator/domains?acts=dns_provider",
        "/operator/domains?q=customer1",
        "/operator/tenants",
        "/operator/expiry",
    ] {
        let (mut path, mut pages, mut rows) = (first.to_owned(), 0, 0);
        loop {
            let answer = page(&web, &operator, &path).await;
            check_whole(&path, &answer);
            rows += answer.body.matches("<tr>\n<th scope=\"row\"><a href=\"/operator/").count();
            pages += 1;
            let Some((_, rest)) = answer.body.split_once("<p class=\"op-next\"><a href=\"") else { break };
            path = rest.split_once('"').unwrap().0.replace("&#38;", "&");
            assert!(pages < 100, "{first} has no end");
        }
        let all = match first {
            "/operator/domains?reason=cname_points_elsewhere" => 420,
            "/operator/domains?acts=dns_provider" => 60,
            "/operator/tenants" => 40,
            "/operator/domains?q=customer1" => 1_111,
            _ => rows,
        };
        assert_eq!(rows, all, "{first}");
    }
}

/// Every page and every story, of domains in every state, on PostgreSQL.
#[tokio::test]
async fn the_same_on_postgres() {
    let test = TestStore::blank(Kind::Postgres).await;
    let web = Web::on(Rig::on(56, &test.url).await, "").await;
    let operator = web.signed_in_operator().await;
    let issuer = issuers::list(&web.rig.app.store).await.unwrap().remove(0);
    fleet_seed::fill(&web.rig.app.store, &fleet_seed::parts(), (300, 3), issuer.id.as_str(), START).await;
    for path in paths() {
        let ids = if path.contains("tenants/{id}") { 0..3_u32 } else { 0..100 };
        let prefix = if path.contains("tenants") { "ten_" } else { "dom_" };
        for id in ids.take(if path.contains("{id}") { 100 } else { 1 }) {
            let path = path.replace("{id}", &format!("{prefix}{id:032}"));
            check_whole(&path, &page(&web, &operator, &path).await);
        }
    }
    for path in ["?q=support7.customer7.test", "?q=customer", "?reason=txt_missing", "?acts=tenant"] {
        let path = format!("/operator/domains{path}");
        check_whole(&path, &page(&web, &operator, &path).await);
    }
    for path in
        ["/tenants?cursor=%00", "/domains?q=a&cursor=%00:x", "/domains?acts=tenant&cursor=0:%00", "/expiry?cursor=0:%00"]
    {
        assert_eq!(page(&web, &operator, &format!("/operator{path}")).await.status, 422, "{path}");
    }
    for n in 0..100 {
        let path = format!("/api/v1/explain?hostname=support{n}.customer{n}.test");
        let answer = web.api(&web.operator, "GET", &path, None).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    }
    drop(web);
    test.remove().await;
}
