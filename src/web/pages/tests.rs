use askama::Template as _;

use super::ProblemPage;
use super::page::DomainPage;
use super::samples::{self, HOSTILE, NOW};
use crate::app::show::DomainView;

fn render(view: &DomainView) -> String {
    DomainPage { view, now: NOW, csrf: "00ff".into(), asked: true }.render().unwrap()
}

/// Every `aria-labelledby` and every `href="#…"` must name an id that is there, once.
#[track_caller]
fn check_labels(html: &str) {
    let attributes = |name: &str| -> Vec<String> {
        html.split(&format!("{name}=\"")).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
    };
    let ids = attributes(" id");
    for id in &ids {
        assert_eq!(ids.iter().filter(|other| *other == id).count(), 1, "id {id} twice");
    }
    let targets = attributes("aria-labelledby").into_iter();
    for target in targets.chain(attributes("href").into_iter().filter_map(|h| h.strip_prefix('#').map(str::to_owned))) {
        assert!(ids.contains(&target), "nothing has the id {target}");
    }
    assert_eq!(html.matches("<h1").count(), 1);
    assert_eq!(html.matches("<title>").count(), 1);
    assert!(html.contains("<html lang=\"en\">") && html.contains("name=\"viewport\""));
    for form in html.split("<form").skip(1) {
        let form = form.split("</form>").next().unwrap_or_default();
        assert!(
            form.contains("name=\"csrf\" value=\"00ff\"") && form.contains("<button") && form.contains("method=\"post\"")
        );
    }
}

#[test]
fn every_sample_has_title_headings_and_labelled_parts() {
    for (name, view) in samples::all() {
        let html = render(&view);
        check_labels(&html);
        assert!(html.contains(&format!("<title>{}: ", view.hostname_display)) || name == "hostile", "{name}");
        let removable = html.contains(&format!("action=\"/domains/{}/remove\"", view.id));
        assert_eq!(removable, view.claim.is_open() && name != "releasing", "{name}");
        for record in view.records.iter().filter(|_| html.contains("id=\"records\"")) {
            assert!(html.contains(&format!("<code>{}</code>", record.host)) || name == "hostile", "{name}");
        }
    }
}

#[test]
fn hostile_values_stay_text() {
    let (_, view) = samples::all().into_iter().find(|(name, _)| *name == "hostile").unwrap();
    let html = render(&view);
    assert!(!html.contains(HOSTILE) && !html.contains("<script") && !html.contains("<img"), "{html}");
    assert!(html.contains("&#60;script&#62;"));
    let page = ProblemPage { status: 404, title: "Not found", detail: HOSTILE, home: HOSTILE }.render().unwrap();
    check_labels(&page);
    assert!(!page.contains(HOSTILE));
}

#[test]
fn a_name_in_another_script_is_shown_in_both_spellings() {
    let (_, view) = samples::all().into_iter().find(|(name, _)| *name == "live").unwrap();
    let html = render(&view);
    assert!(
        html.contains("<h1 id=\"name\">bücher.acme.example</h1>")
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
