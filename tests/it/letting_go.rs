//! Letting go: undo, ends by force, names at rest, reminders, revocation, and the pages and commands for all that.

use std::time::Duration;

use nameplate::app::undo::{self, ForceError, UndoError};
use nameplate::app::{self, Settings, expect::Expect};
use nameplate::dns::world::{Fault, How};
use nameplate::model::claim::Claim;
use nameplate::model::conclude::RefusedUndo;
use nameplate::model::id::{DomainId, TenantId};
use nameplate::model::letting_go::{LettingGo, Revoke};
use nameplate::store::sql;
use serde_json::json;

use crate::support::rig::Rig;
use crate::support::web::Web;

const NAME: &str = "shop.acme.test";
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

async fn live(rig: &Rig) -> (TenantId, DomainId) {
    let tenant = rig.tenant("acme").await;
    let id = rig.claim(&tenant, NAME).await;
    rig.publish(&id, NAME).await;
    rig.until_active(&id, HOUR).await;
    (tenant, id)
}

async fn removed(rig: &Rig, id: &DomainId) {
    assert_eq!(app::remove::remove(&rig.app, id, "tenant").await.unwrap(), Claim::Releasing);
    rig.edge_follows().await;
    assert_eq!(rig.serial_at_edge(NAME), None);
}

async fn bring_back(rig: &Rig, id: &DomainId) -> Result<Claim, UndoError> {
    undo::undo(&rig.app, id, &Expect::ANY, "tenant").await
}

async fn refused(rig: &Rig, id: &DomainId) -> RefusedUndo {
    match bring_back(rig, id).await {
        Err(UndoError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn silent(name: &str) -> Vec<Fault> {
    let fault = |name: String| Fault { name, kind: None, how: How::ServFail, below: false };
    vec![fault(name.to_owned()), fault(format!("_nameplate-challenge.{name}"))]
}

/// Time passes, and names at rest are looked at.
async fn rest(rig: &Rig, time: Duration) {
    rig.stride(4 * HOUR);
    let end = rig.env.now() + time;
    while rig.env.now() < end {
        rig.turn().await;
        app::resting::round(&rig.app).await.unwrap();
    }
}

#[tokio::test]
async fn a_removal_is_undone_without_new_records_and_without_a_new_order() {
    let rig = Rig::new(401).await;
    let (_, id) = live(&rig).await;
    let placed = rig.ca.state().counters().orders_created;
    let (serial, value) = (rig.serial_at_edge(NAME), rig.value(&id).await);
    removed(&rig, &id).await;
    rig.pass(2 * DAY).await;
    assert_eq!(bring_back(&rig, &id).await.unwrap(), Claim::Live);
    rig.until_active(&id, HOUR).await;
    assert_eq!(rig.serial_at_edge(NAME), serial, "the certificate that was kept");
    let now_placed = rig.ca.state().counters().orders_created;
    assert_eq!((now_placed, rig.value(&id).await), (placed, value));
    rig.check_invariants().await;
    // What was undone stays so: nothing of the removal is left that would end it.
    rest(&rig, 9 * DAY).await;
    assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), "live");
    assert_eq!(rig.serial_at_edge(NAME), serial);
    // And it is renewed as ever.
    rest(&rig, 80 * DAY).await;
    assert_ne!(rig.serial_at_edge(NAME), serial);
}

#[tokio::test]
async fn a_removal_is_not_undone_when_something_changed() {
    let rig = Rig::new(402).await;
    let (acme, id) = live(&rig).await;
    assert!(matches!(refused(&rig, &id).await, RefusedUndo::NotReleasing(Claim::Live)));
    removed(&rig, &id).await;
    rig.zones.set_faults(silent(NAME));
    assert_eq!(refused(&rig, &id).await, RefusedUndo::Unseen, "what cannot be seen is no ground");
    rig.zones.set_faults(Vec::new());
    rig.zones.remove(&format!("{NAME}. 60 IN CNAME acme.app.example.")).unwrap();
    rig.unpublish_txt(&id, NAME).await;
    assert!(matches!(refused(&rig, &id).await, RefusedUndo::Untied(_)));
    assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), "releasing");
    // Claimed anew meanwhile: that claim goes on.
    let again = rig.claim(&acme, NAME).await;
    rig.zones.add(&format!("_nameplate-challenge.{NAME}. 60 IN TXT \"{}\"", rig.value(&id).await)).unwrap();
    assert!(matches!(bring_back(&rig, &id).await, Err(UndoError::ClaimedAnew(anew)) if anew == again));
    app::remove::remove(&rig.app, &again, "tenant").await.unwrap();
    assert_eq!(bring_back(&rig, &id).await.unwrap(), Claim::Live, "one of the two ties is enough");
    removed(&rig, &id).await;
    // Another tenant has it by now.
    let beta = rig.tenant("beta").await;
    let next = rig.claim(&beta, NAME).await;
    rig.unpublish_txt(&id, NAME).await;
    rig.publish(&next, NAME).await;
    rig.until_active(&next, 2 * HOUR).await;
    assert!(matches!(refused(&rig, &id).await, RefusedUndo::WentOn | RefusedUndo::NotReleasing(Claim::Released)));
    rig.check_invariants().await;
}

#[tokio::test]
async fn a_tenant_that_left_undoes_nothing_and_a_grace_that_is_over_is_over() {
    let rig = Rig::new(403).await;
    let (_, id) = live(&rig).await;
    removed(&rig, &id).await;
    rig.hand.advance(7 * DAY);
    assert!(matches!(refused(&rig, &id).await, RefusedUndo::NotReleasing(_)), "also before anybody noticed");
    let rig = Rig::new(404).await;
    let (other, id) = live(&rig).await;
    removed(&rig, &id).await;
    app::offboard::begin(&rig.app.store, &rig.env, &other, "operator").await.unwrap();
    assert_eq!(refused(&rig, &id).await, RefusedUndo::TenantLeft);
}

/// An undo races the removal's end, another's claim and itself at every boundary: whatever wins, the rows agree.
#[tokio::test]
async fn an_undo_survives_a_crash_at_every_boundary() {
    let mut cuts = 0;
    for cut in 1..12 {
        let rig = Rig::new(405).await;
        let (_, id) = live(&rig).await;
        removed(&rig, &id).await;
        rig.scissors.set(cut);
        let app = rig.new_worker();
        let cut = tokio::select! {
            biased;
            done = undo::undo(&app, &id, &Expect::ANY, "tenant") => { done.unwrap(); false }
            () = rig.scissors.reached() => true,
        };
        cuts += usize::from(cut);
        rig.scissors.set(0);
        if cut {
            let state = rig.domain_text(&id, "claim").await.unwrap();
            assert_eq!(state, "releasing", "nothing of it was kept");
            bring_back(&rig, &id).await.unwrap();
        }
        rig.until_active(&id, HOUR).await;
        rig.check_invariants().await;
    }
    assert!(cuts > 0, "nothing was cut");
}

#[tokio::test]
async fn an_operator_ends_a_stuck_release_and_says_why() {
    let rig = Rig::new(406).await;
    let (_, former) = live(&rig).await;
    let force = async |reason: &str| undo::force_release(&rig.app, &former, reason, &Expect::ANY, "operator").await;
    assert!(matches!(force("its owner waits").await, Err(ForceError::Refused(_))), "the claim stands");
    app::remove::remove(&rig.app, &former, "tenant").await.unwrap();
    // The new owner cannot get rid of the former record.
    let beta = rig.tenant("beta").await;
    let next = rig.claim(&beta, NAME).await;
    rig.zones.add(&format!("_nameplate-challenge.{NAME}. 60 IN TXT \"{}\"", rig.value(&next).await)).unwrap();
    rig.zones.remove(&format!("{NAME}. 60 IN CNAME acme.app.example.")).unwrap();
    rig.zones.add(&format!("{NAME}. 60 IN CNAME beta.app.example.")).unwrap();
    rest(&rig, 9 * DAY).await;
    assert_eq!(rig.domain_text(&next, "claim").await.unwrap(), "awaiting_dns");
    assert_eq!(rig.domain_text(&former, "claim").await.unwrap(), "released");
    let long = "x".repeat(301);
    for reason in ["", "  ", long.as_str(), "two\nlines"] {
        assert!(matches!(force(reason).await, Err(ForceError::NoReason)), "{reason:?}");
    }
    force("its owner cannot delete the record").await.unwrap();
    rig.until_active(&next, HOUR).await;
    let told = sql("SELECT cause, actor FROM events WHERE domain_id = $1 AND kind = 'release_forced'").bind(former.as_str());
    let rows = rig.app.store.query(told).await.unwrap();
    assert_eq!((rows.len(), rows[0].text("actor").unwrap().as_str()), (1, "operator"));
    assert!(rows[0].text("cause").unwrap().contains("cannot delete the record"));
    assert!(matches!(force("again").await, Err(ForceError::Refused(_))));
    rig.check_invariants().await;
}

/// Within the grace it destroys what undo would need, in the same transaction.
#[tokio::test]
async fn a_release_that_is_ended_within_the_grace_leaves_no_key() {
    let rig = Rig::new(407).await;
    let (_, id) = live(&rig).await;
    removed(&rig, &id).await;
    undo::force_release(&rig.app, &id, "asked for by the customer", &Expect::ANY, "operator").await.unwrap();
    assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), "released");
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM certificates WHERE sealed_key IS NOT NULL")).await, 0);
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM holdings WHERE state = 'free'")).await, 1);
    assert!(matches!(refused(&rig, &id).await, RefusedUndo::NotReleasing(Claim::Released)));
}

/// Three looks over a day that see the name lead elsewhere free it; silence neither counts nor resets, and a crash at any boundary
/// costs a look.
#[tokio::test]
async fn a_name_at_rest_is_free_once_it_leads_elsewhere() {
    let rig = Rig::new(408).await;
    let (_, id) = live(&rig).await;
    removed(&rig, &id).await;
    let free = sql("SELECT count(*) AS n FROM holdings WHERE state = 'free'");
    rest(&rig, 3 * DAY).await;
    assert_eq!(rig.count(free.clone()).await, 0, "it leads here");
    rig.zones.remove(&format!("{NAME}. 60 IN CNAME acme.app.example.")).unwrap();
    rest(&rig, DAY).await;
    rig.zones.set_faults(silent(NAME));
    rest(&rig, 4 * DAY).await;
    assert_eq!(rig.count(free.clone()).await, 0, "four days of silence are no looks");
    rig.zones.set_faults(Vec::new());
    rig.scissors.set(1);
    let mut round = Box::pin(app::resting::round(&rig.app));
    tokio::select! { biased; _ = &mut round => {} () = rig.scissors.reached() => {} }
    drop(round);
    rig.scissors.set(0);
    rest(&rig, 2 * DAY).await;
    assert_eq!(rig.count(free).await, 1);
    // Free is free: whoever proves it has it at once, with the former's record still there.
    let beta = rig.tenant("beta").await;
    let next = rig.claim(&beta, NAME).await;
    rig.publish(&next, NAME).await;
    rig.until_active(&next, HOUR).await;
    rig.check_invariants().await;
}

#[tokio::test]
async fn what_dangles_is_told_once_a_week_until_it_does_not() {
    let rig = Rig::new(409).await;
    let (acme, id) = live(&rig).await;
    app::offboard::begin(&rig.app.store, &rig.env, &acme, "operator").await.unwrap();
    rest(&rig, 23 * DAY).await;
    let told = async |kind: &str| rig.events(&id).await.iter().filter(|k| *k == kind).count();
    assert_eq!((told("name_dangles").await, told("name_let_go").await), (4, 0), "after a day, then every week");
    let said =
        sql("SELECT cause, detail, position FROM events WHERE domain_id = $1 AND kind = 'name_dangles'").bind(id.as_str());
    let row = &rig.app.store.query(said).await.unwrap()[0];
    let cause = row.text("cause").unwrap();
    assert!(
        cause.contains(NAME) && cause.contains("acme.app.example") && cause.contains("delete the CNAME record"),
        "{cause}"
    );
    rig.zones.set_faults(silent(NAME));
    rest(&rig, 20 * DAY).await;
    assert_eq!(told("name_dangles").await, 4, "of what cannot be seen nobody is told");
    rig.zones.set_faults(Vec::new());
    rig.zones.remove(&format!("{NAME}. 60 IN CNAME acme.app.example.")).unwrap();
    rest(&rig, 20 * DAY).await;
    assert_eq!((told("name_dangles").await, told("name_let_go").await), (4, 1));
    rig.check_invariants().await;
}

#[tokio::test]
async fn certificates_are_revoked_where_policy_says_so_and_never_in_the_way() {
    for (revoke, moves, expected) in [
        (Revoke::Never, true, false),
        (Revoke::OnHandover, true, true),
        (Revoke::OnHandover, false, false),
        (Revoke::Always, false, true),
    ] {
        let mut rig = Rig::new(410).await;
        let letting_go = LettingGo { revoke, ..LettingGo::default() };
        rig.app.settings = std::sync::Arc::new(Settings { letting_go, ..Settings::clone(&rig.app.settings) });
        let (_, id) = live(&rig).await;
        removed(&rig, &id).await;
        if moves {
            let beta = rig.tenant("beta").await;
            let next = rig.claim(&beta, NAME).await;
            rig.zones.remove(&format!("{NAME}. 60 IN CNAME acme.app.example.")).unwrap();
            rig.unpublish_txt(&id, NAME).await;
            rig.publish(&next, NAME).await;
            rig.until_active(&next, 2 * HOUR).await;
        } else {
            rest(&rig, 8 * DAY).await;
        }
        rest(&rig, Duration::from_secs(60)).await;
        assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), "released", "{revoke}: revoking holds nothing up");
        // A worker that dies after the intent costs a try.
        rig.scissors.set(1);
        let mut round = Box::pin(app::revoke::round(&rig.app));
        tokio::select! { biased; _ = &mut round => {} () = rig.scissors.reached() => {} }
        drop(round);
        rig.scissors.set(0);
        rig.hand.advance(HOUR);
        let round = app::revoke::round(&rig.app).await.unwrap();
        assert_eq!(round.revoked, usize::from(expected), "{revoke} {moves}: {round:?}");
        let ari = sql("SELECT ari_id FROM certificates WHERE domain_id = $1").bind(id.as_str());
        let ari = rig.app.store.query(ari).await.unwrap()[0].text("ari_id").unwrap();
        assert_eq!(rig.ca.state().is_revoked(&ari), expected, "{revoke} {moves}");
        let told = rig.events(&id).await.iter().filter(|k| *k == "certificate_revoked").count();
        assert_eq!(told, usize::from(expected));
        assert_eq!(app::revoke::round(&rig.app).await.unwrap(), app::revoke::Round::default(), "once");
        rig.check_invariants().await;
    }
}

#[tokio::test]
async fn the_api_undoes_and_ends_and_lists() {
    let web = Web::new(411).await;
    let (acme, token) = web.tenant("acme").await;
    let (_, stranger) = web.tenant("globex").await;
    let id = web.rig.claim(&acme, NAME).await;
    web.rig.publish(&id, NAME).await;
    web.rig.until_active(&id, HOUR).await;
    let path = format!("/api/v1/domains/{id}");
    let (undo, end) = (format!("{path}/undo-removal"), format!("{path}/end-release"));
    assert_eq!(web.api(&token, "POST", &undo, None).await.problem(), (409, "nothing_to_undo".to_owned()));
    assert_eq!(web.api(&token, "DELETE", &path, None).await.status, 200);
    assert!(web.api(&token, "GET", &path, None).await.json()["undo_until"].is_string());
    assert_eq!(web.api(&stranger, "POST", &undo, None).await.problem().0, 404);
    let back = web.api(&token, "POST", &undo, None).await;
    assert_eq!(
        (back.status.as_u16(), &back.json()["claim"], &back.json()["undo_until"]),
        (200, &json!("live"), &json!(null))
    );
    web.api(&token, "DELETE", &path, None).await;
    web.rig.zones.remove(&format!("{NAME}. 60 IN CNAME acme.app.example.")).unwrap();
    web.rig.unpublish_txt(&id, NAME).await;
    assert_eq!(web.api(&token, "POST", &undo, None).await.problem(), (409, "tie_gone".to_owned()));
    web.rig.zones.add(&format!("{NAME}. 60 IN CNAME acme.app.example.")).unwrap();
    rest(&web.rig, 2 * DAY).await;
    let left = web.api(&web.operator, "GET", "/api/v1/left-behind?limit=1", None).await.json();
    assert_eq!((&left["items"][0]["hostname"], &left["items"][0]["target"]), (&json!(NAME), &json!("acme.app.example")));
    assert_eq!(web.api(&token, "GET", "/api/v1/left-behind", None).await.problem(), (403, "operator_needed".to_owned()));
    let reason = || Some(json!({ "reason": "The customer sold the name." }));
    assert_eq!(web.api(&token, "POST", &end, reason()).await.problem(), (403, "operator_needed".to_owned()));
    let empty = web.api(&web.operator, "POST", &end, Some(json!({ "reason": " " }))).await;
    assert_eq!(empty.problem().0, 422);
    let over = web.api(&web.operator, "POST", &end, reason()).await;
    assert_eq!((over.status.as_u16(), &over.json()["claim"]), (200, &json!("released")), "{}", over.body);
    assert_eq!(web.api(&web.operator, "POST", &end, reason()).await.problem(), (409, "nothing_to_end".to_owned()));
    let left = web.api(&web.operator, "GET", "/api/v1/left-behind", None).await.json();
    assert_eq!(left["items"], json!([]), "what is free is nobody's to be reminded of");
}

#[tokio::test]
async fn the_pages_undo_end_and_take_off_board_without_a_script() {
    let web = Web::new(412).await;
    let (acme, _) = web.tenant("acme").await;
    let id = web.rig.claim(&acme, NAME).await;
    web.rig.publish(&id, NAME).await;
    web.rig.until_active(&id, HOUR).await;
    let (admin, operator) = (web.admin(&acme).await, web.signed_in_operator().await);
    let (path, inside) = (format!("/domains/{id}"), format!("/operator/domains/{id}"));
    assert!(!web.page(&admin, &path).await.body.contains("undo-removal"), "there is nothing to undo");
    let form = format!("csrf={}", web.csrf(&admin).await);
    assert_eq!(web.post(&admin, &format!("{path}/remove"), &form).await.status, 303);
    let gone = web.page(&admin, &path).await;
    assert!(gone.body.contains("Changed your mind?") && gone.body.contains("Undo the removal"), "{}", gone.body);
    let form = format!("csrf={}", gone.csrf());
    let forged = web.post(&admin, &format!("{path}/undo-removal"), "csrf=00").await;
    assert_eq!(forged.status, 403);
    let back = web.post(&admin, &format!("{path}/undo-removal"), &form).await;
    assert_eq!((back.status.as_u16(), back.header("location").ends_with("?returned=1")), (303, true), "{}", back.body);
    assert!(web.page(&admin, &format!("{path}?returned=1")).await.body.contains("The removal is undone"));
    let again = web.post(&admin, &format!("{path}/undo-removal"), &form).await;
    assert!(again.status == 409 && again.body.contains("cannot be brought back"), "{}", again.body);

    // A release is ended on the operators' page, with a reason.
    assert!(!web.page(&operator, &inside).await.body.contains("end-release"));
    assert_eq!(web.post(&admin, &format!("{path}/remove"), &form).await.status, 303);
    let page = web.page(&operator, &inside).await;
    let csrf = page.csrf();
    assert!(
        page.body.contains("<label for=\"reason\">") && page.body.contains("required maxlength=\"300\""),
        "{}",
        page.body
    );
    let empty = web.post(&operator, &format!("{inside}/end-release"), &format!("csrf={csrf}&reason=+")).await;
    assert!(empty.status == 422 && empty.body.contains("role=\"alert\""), "{}", empty.body);
    let over =
        web.post(&operator, &format!("{inside}/end-release"), &format!("csrf={csrf}&reason=Its+owner+%3Cwaits%3E")).await;
    assert_eq!(over.status, 303, "{}", over.body);
    let page = web.page(&operator, &inside).await;
    assert!(page.body.contains("Its owner &#60;waits&#62;") && !page.body.contains("end-release"), "{}", page.body);

    // A tenant is taken off board by who types its slug.
    let tenant = format!("/operator/tenants/{acme}");
    assert!(web.page(&operator, &tenant).await.body.contains(&format!("{tenant}/remove")));
    let sure = web.page(&operator, &format!("{tenant}/remove")).await;
    assert!(sure.body.contains("There is no way back") && sure.body.contains("acme.app.example"), "{}", sure.body);
    let csrf = sure.csrf();
    let wrong = web.post(&operator, &format!("{tenant}/remove"), &format!("csrf={csrf}&slug=acm")).await;
    assert!(wrong.status == 422 && wrong.body.contains("nothing was done"), "{}", wrong.body);
    let left = web.post(&operator, &format!("{tenant}/remove"), &format!("csrf={csrf}&slug=acme")).await;
    assert_eq!(left.status, 303, "{}", left.body);
    assert!(!web.page(&operator, &tenant).await.body.contains(&format!("{tenant}/remove")));
    assert_eq!(web.page(&operator, &format!("{tenant}/remove")).await.status, 409);
    assert_eq!(web.page(&admin, &path).await.status, 401, "its sessions ended");
}
