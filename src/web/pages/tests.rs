use std::time::Duration;

use askama::Template as _;

use super::ProblemPage;
use super::add::{AddPage, Added, Refused};
use super::bulk::{ImportLine, ImportsPage};
use super::bulk_show::ImportPage;
use super::domain::{DomainPage, Shared};
use super::enter::EnterPage;
use super::face::Face;
use super::hand_off::{DeadLinkPage, HandOffPage};
use super::history::HistoryPage;
use super::list::{ListPage, ListRow};
use super::remove::RemovePage;
use super::samples::{self, HOSTILE, NOW};
use super::share::SharedPage;
use super::sign_in::{SignInPage, SignedOutPage};
use crate::app::links::Dead;
use crate::app::show::{ClaimCounts, CollisionView, DomainView, ImportView, PlanView, PointView, VerdictCounts};
use crate::model::bulk::{Format, ImportState, Verdict};
use crate::model::id::ImportId;
use crate::store::bulk_rows::{ImportRow, Refusal};

fn face(view: &DomainView) -> Face {
    Face::new(view, vec![view.hostname.to_string()], NOW).unwrap()
}

fn render(view: &DomainView) -> String {
    let shared =
        vec![Shared { id: "lnk_1".into(), made: "just now".into(), ends: "in 7 days".into(), ends_full: "then".into() }];
    let page = DomainPage {
        face: face(view),
        csrf: "00ff".into(),
        notice: Some("We are looking right now."),
        operator: true,
        position: 7,
        shared,
        zone_file: "/domains/x/records.zone".into(),
    };
    page.render().unwrap()
}

/// The other pages, each filled with the same text.
fn others(text: &str, view: &DomainView) -> Vec<String> {
    let hostile = || text.to_owned();
    let id = view.id.clone();
    let row = ListRow {
        id: id.clone(),
        name: hostile(),
        ascii: Some(hostile()),
        tone: "act",
        state: "Live",
        sentence: hostile(),
        yours: true,
    };
    let list = ListPage {
        rows: vec![row],
        typed: hostile(),
        filter: "",
        next: Some("/domains?q=".into()),
        first: false,
        live: String::new(),
    };
    let add = AddPage {
        csrf: "00ff".into(),
        operator: true,
        tenant: hostile(),
        names: hostile(),
        trouble: Some(hostile()),
        added: vec![Added { id: id.clone(), name: hostile(), typed: Some(hostile()), new: true }],
        refused: vec![Refused { typed: hostile(), why: hostile() }],
        left: 3,
        with_partner: true,
        redirect: true,
        partners: vec![hostile(), hostile()],
    };
    let hand_off = HandOffPage {
        face: face(view),
        tenant_name: hostile(),
        ends: "soon".into(),
        ends_full: "then".into(),
        live: "/hand-off/x/live".into(),
        zone_file: "/hand-off/x/records.zone".into(),
    };
    let history = HistoryPage { face: face(view), events: view.events.clone(), older: Some(3), first: false };
    let shared = SharedPage { id, hostname: hostile(), url: hostile(), ends: "soon".into(), ends_full: "then".into() };
    let sign_in = SignInPage { next: text, trouble: Some("No.") };
    vec![
        list.render().unwrap(),
        imports(text).render().unwrap(),
        import(text, ImportState::Working).render().unwrap(),
        import(text, ImportState::Paused).render().unwrap(),
        import(text, ImportState::Done).render().unwrap(),
        add.render().unwrap(),
        hand_off.render().unwrap(),
        history.render().unwrap(),
        shared.render().unwrap(),
        RemovePage { face: face(view), csrf: "00ff".into() }.render().unwrap(),
        EnterPage { tenant_name: hostile(), action: "/enter/x".into() }.render().unwrap(),
        sign_in.render().unwrap(),
        SignedOutPage { operator: false, return_url: Some(hostile()) }.render().unwrap(),
        DeadLinkPage::portal(Dead::Used).render().unwrap(),
        DeadLinkPage::hand_off(Dead::Expired).render().unwrap(),
        ProblemPage { status: 404, title: "Not found", detail: text, home: text, sign_in: Some(hostile()) }
            .render()
            .unwrap(),
    ]
}

fn imports(text: &str) -> ImportsPage {
    let line = ImportLine {
        id: ImportId::mint(NOW, [1; 10]),
        name: text.to_owned(),
        tone: "good",
        state: "Imported",
        rows: 3,
        refused: 1,
        at: "just now".into(),
        at_full: "then".into(),
        at_machine: NOW.rfc3339(),
    };
    ImportsPage {
        csrf: "00ff".into(),
        operator: true,
        tenant: text.to_owned(),
        trouble: Some(text.to_owned()),
        most: 100_000,
        rows: vec![line],
        next: Some("/imports?cursor=x".into()),
    }
}

fn import(text: &str, state: ImportState) -> ImportPage {
    let later = NOW + Duration::from_secs(7_200);
    let plan = PlanView {
        made_at: NOW,
        orders: 300,
        ahead: 2,
        registered_domains: 2,
        first_order_at: Some(NOW),
        last_order_at: Some(later),
        account_last_order_at: Some(NOW),
        colliding: 1,
        collisions: vec![CollisionView {
            registered_domain: text.to_owned(),
            names: 250,
            at_once: 50,
            last_order_at: later,
        }],
        curve: vec![PointView { at: NOW, orders: 50 }, PointView { at: later, orders: 300 }],
    };
    let view = ImportView {
        turned_by: None,
        turned_at: None,
        next_look_at: None,
        id: ImportId::mint(NOW, [1; 10]),
        name: text.to_owned(),
        format: Format::Csv,
        dry_run: false,
        create_tenants: false,
        tenant_id: None,
        state,
        rows: 400,
        judged: 350,
        verdicts: VerdictCounts { pending: 50, claimed: 300, refused: 50, ..VerdictCounts::default() },
        tenants_added: 0,
        claims: ClaimCounts { awaiting_dns: 200, queued: 50, live: 48, expired: 1, removed: 1 },
        plan: Some(plan),
        digest: None,
        created_at: NOW,
        received_at: Some(NOW),
        finished_at: None,
        version: 3,
    };
    let refusal = Refusal { code: "hostname_is_url".into(), detail: text.to_owned(), suggestion: Some(text.to_owned()) };
    let row = ImportRow {
        method: None,
        n: 1,
        line: 2,
        tenant: None,
        typed: text.to_owned(),
        hostname: None,
        verdict: Verdict::Refused,
        refusal: Some(refusal),
        tenant_id: None,
        domain_id: None,
    };
    ImportPage::new(view, vec![row], "00ff".into(), false, NOW)
}

/// Every `aria-labelledby` and every `href="#…"` must name an id that is there, once.
#[track_caller]
fn check_labels(html: &str) {
    let attributes = |name: &str| -> Vec<String> {
        html.split(&format!("{name}=\"")).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
    };
    check_nesting(html);
    let ids = attributes(" id");
    for id in &ids {
        assert_eq!(ids.iter().filter(|other| *other == id).count(), 1, "id {id} twice");
    }
    let described =
        attributes("aria-describedby").into_iter().flat_map(|all| all.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let targets = attributes("aria-labelledby").into_iter().chain(attributes("label for")).chain(described);
    for target in targets.chain(attributes("href").into_iter().filter_map(|h| h.strip_prefix('#').map(str::to_owned))) {
        assert!(ids.contains(&target), "nothing has the id {target}");
    }
    assert_eq!(html.matches("<h1").count(), 1);
    assert_eq!(html.matches("<title>").count(), 1);
    assert!(html.contains("<html lang=\"en\">") && html.contains("name=\"viewport\""));
    for form in html.split("<form").skip(1) {
        let form = form.split("</form>").next().unwrap_or_default();
        let changes = form.contains("method=\"post\"") && !form.contains("/enter/") && !form.contains("/operator/sign-in");
        assert!(form.contains("<button") && (!changes || form.contains("name=\"csrf\" value=\"00ff\"")), "{form}");
    }
    // Every field that people fill in has a label.
    for kind in ["<input ", "<select ", "<textarea "] {
        for field in html.split(kind).skip(1).map(|rest| rest.split('>').next().unwrap_or_default()) {
            let id = field.split("id=\"").nth(1).and_then(|rest| rest.split('"').next());
            let labelled = id.is_some_and(|id| html.contains(&format!("<label for=\"{id}\"")));
            assert!(labelled || field.contains("type=\"hidden\""), "a field without label: {field}");
        }
    }
}

/// Every element that is opened is closed, in its order.
#[track_caller]
fn check_nesting(html: &str) {
    const VOID: [&str; 5] = ["meta", "link", "input", "br", "img"];
    let mut open: Vec<&str> = Vec::new();
    for tag in html.split('<').skip(1).filter_map(|rest| rest.split('>').next()).filter(|tag| !tag.starts_with('!')) {
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap_or_default();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closed out of order");
        } else if !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
}

#[test]
fn every_sample_has_title_headings_and_labelled_parts() {
    for (name, view) in samples::all() {
        let html = render(&view);
        check_labels(&html);
        assert!(html.contains(&format!("<title>{}: ", view.hostname_display)) || name == "hostile", "{name}");
        let removable = html.contains(&format!("href=\"/domains/{}/remove\"", view.id));
        assert_eq!(removable, view.claim.is_open() && name != "releasing", "{name}");
        for record in view.records.iter().filter(|_| html.contains("id=\"records\"")) {
            assert!(html.contains(&format!("-host\">{}</code>", record.host)) || name == "hostile", "{name}");
            assert!(html.contains(&format!("-name\">{}</code>", record.name)) || name == "hostile", "{name}");
        }
    }
}

#[test]
fn hostile_values_stay_text() {
    let (_, view) = samples::all().into_iter().find(|(name, _)| *name == "hostile").unwrap();
    let html = render(&view);
    assert!(!html.contains(HOSTILE) && html.matches("<script").count() == 1 && !html.contains("<img"), "{html}");
    assert!(html.contains("&#60;script&#62;"));
    for page in others(HOSTILE, &view) {
        check_labels(&page);
        assert!(!page.contains(HOSTILE) && page.matches("<script").count() == 1 && !page.contains("<img"), "{page}");
    }
}

#[test]
fn the_dns_host_is_named_where_it_is_known_and_stays_text() {
    let sample = |wanted: &str| samples::all().into_iter().find(|(name, _)| *name == wanted).unwrap().1;
    let known = render(&sample("awaiting"));
    assert!(
        known.contains(
            "Your DNS is hosted at <strong>Cloudflare</strong>: records are changed there, in <strong>acme.example</strong>."
        ),
        "{known}"
    );
    // Its own fields, and the way to them.
    for told in ["<li>Records</li><li>Add record</li>", "<dt>Target</dt>", "<dt>Content</dt>", "DNS only", ">Auto<"] {
        assert!(known.contains(told), "{told}: {known}");
    }
    assert!(
        known.contains("id=\"copy-2-host\">support</code>") && known.contains("Cloudflare adds acme.example by itself.")
    );
    let mut unknown = sample("awaiting");
    unknown.checks.iter_mut().for_each(|check| check.dns_host = None);
    let html = render(&unknown);
    assert!(!html.contains("Your DNS is hosted at") && !html.contains("DNS host"), "{html}");
    assert!(!serde_json::to_string(&unknown).unwrap().contains("dns_host"));
    let hostile = render(&sample("hostile"));
    let escaped = "&#34;&#62;&#60;script&#62;alert(&#39;x&#39;)&#60;/script&#62;&#60;img src=x onerror=alert(1)&#62;";
    let both = format!("hosted at <strong>{escaped}</strong>: records are changed there, in <strong>{escaped}</strong>.");
    assert!(hostile.contains(&both), "{hostile}");
    assert!(!hostile.contains(HOSTILE));
}

#[test]
fn a_name_in_another_script_is_shown_in_both_spellings() {
    let (_, view) = samples::all().into_iter().find(|(name, _)| *name == "live").unwrap();
    let html = render(&view);
    assert!(
        html.contains("<h1 id=\"name\"><bdi>bücher.acme.example</bdi></h1>")
            && html.contains("<code>xn--bcher-kva.acme.example</code>")
    );
    assert!(html.contains("2 of 2 serve it"));
}

#[test]
fn the_timeline_says_what_a_look_found_in_words() {
    let (_, mut view) = samples::all().into_iter().find(|(name, _)| *name == "live").unwrap();
    view.events[0].detail = serde_json::json!({
        "findings": [{ "check": "ownership", "code": "txt_ok", "observed": ["a", "b"] }, { "odd": 1 }],
        "order": { "state": "placed" },
        "serial": "04d2",
    });
    let html = render(&view);
    assert!(html.contains(" · ownership: txt_ok — seen a, b · serial: 04d2</p>"), "{html}");
    assert!(!html.contains("placed") && !html.contains("odd"), "{html}");
}

#[test]
fn what_turns_writing_around_or_never_ends_is_shown_as_what_it_is() {
    let (_, mut view) = samples::all().into_iter().find(|(name, _)| *name == "awaiting").unwrap();
    view.checks[0].observed = vec![format!("a\u{202e}b\0c{}", "x".repeat(10_000)); 400];
    view.events[0].cause = "y".repeat(10_000);
    let html = render(&view);
    assert!(html.contains("a[U+202E]b[U+0000]c") && html.contains("… and 388 more"), "{html}");
    assert!(!html.contains('\u{202e}') && !html.contains('\0'));
    assert!(html.len() < 60_000, "{}", html.len());
}

#[test]
fn steps_lifetime_and_actors_are_said_in_words() {
    let (_, mut view) = samples::all().into_iter().find(|(name, _)| *name == "live").unwrap();
    view.events[0].actor = "tenant ses_00000000000000000000000000000000".into();
    view.events[1].actor = "operator tok_00000000000000000000000000000000".into();
    let html = render(&view);
    assert!(html.contains("<progress id=\"life\" max=\"89\" value=\"0\""), "{html}");
    assert!(html.contains("by you, in the portal") && html.contains("by the operator"));
    assert!(!html.contains("ses_0000"));
}

#[test]
fn four_lights_open_to_expected_and_observed_with_what_differs_marked() {
    let sample = |wanted: &str| samples::all().into_iter().find(|(name, _)| *name == wanted).unwrap().1;
    let html = render(&sample("awaiting"));
    let lights: Vec<&str> = html.split("<details class=\"light ").skip(1).filter_map(|l| l.split('"').next()).collect();
    assert_eq!(lights, ["good", "act", "good", "off"]);
    // The one at which it is the reader's move is open; what it stands at is told to the script.
    let open: Vec<&str> =
        html.split("<details ").skip(1).filter(|d| d.split('>').next().unwrap().ends_with(" open")).collect();
    assert!(open.len() == 1 && open[0].contains("id=\"light-routing\" data-stands=\"cname_points_elsewhere\""));
    // Each in words as well: signs and colours are for those who see them.
    for word in ["Right", "Needs a change", "Not yet"] {
        assert!(html.contains(&format!("<span class=\"badge\">{word}</span>")), "{word}");
    }
    // Servers that disagree, side by side, with how long each answer lives.
    assert!(html.contains("<bdi>resolver own-a</bdi> · kept for 60 min"), "{html}");
    assert!(
        html.contains("<mark><span class=\"hidden\">differs: </span>shops.elsewhere.example<span class=\"hidden\">"),
        "{html}"
    );
    assert!(html.contains("<span class=\"hidden\">as expected: </span><bdi>ns1.dns.example</bdi> · kept for 5 min"));
    assert!(html.contains("<dt>Old answers are gone</dt>"));
    let right = render(&sample("live"));
    assert!(!right.contains("<mark") && right.contains("Valid, and served by every edge."));
}

#[test]
fn a_claim_that_waits_for_the_name_alone_is_not_told_to_publish() {
    use crate::model::evidence::Check;
    use crate::model::reason::Reason;
    let (_, mut view) = samples::all().into_iter().find(|(name, _)| *name == "awaiting").unwrap();
    let mut held = view.checks[2].clone();
    (held.check, held.verdict, held.who_acts) = (Check::Holding, Reason::Quarantined.verdict(), Reason::Quarantined.acts());
    held.sentence = Reason::Quarantined.sentence().into();
    let routing = &mut view.checks[1];
    (routing.verdict, routing.who_acts) = (Reason::CnameOk.verdict(), Reason::CnameOk.acts());
    view.checks.push(held);
    let html = render(&view);
    assert!(html.contains("Records in place") && html.contains("Waiting for the name"), "{html}");
    assert!(!html.contains("Records to publish") && !html.contains("Waiting for DNS"));
}
