//! The pretend DNS provider: one page with a zone's records, a form to add one, a button to delete each.

use askama::Template;
use axum::Router;
use axum::extract::{Form, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use serde::Deserialize;

use super::dns::ZoneStore;
use crate::model::look::name;
use crate::telemetry::Chain;

/// The types the form offers.
const KINDS: [&str; 6] = ["TXT", "CNAME", "A", "AAAA", "CAA", "MX"];

#[derive(Clone)]
struct Panel {
    zones: ZoneStore,
    zone: &'static str,
}

#[derive(Template)]
#[template(path = "sandbox/provider.html")]
struct Page<'a> {
    zone: &'a str,
    records: Vec<Line>,
    kinds: [&'static str; 6],
    typed: Typed,
    trouble: Option<String>,
}

/// One record, as the table shows it.
struct Line {
    line: String,
    name: String,
    kind: String,
    value: String,
    /// The zone's own records are the provider's to keep.
    fixed: bool,
}

/// What was typed into the form.
#[derive(Clone, Default, Deserialize)]
struct Typed {
    name: String,
    kind: String,
    value: String,
}

#[derive(Deserialize)]
struct Deleted {
    line: String,
}

/// The page of one zone.
pub fn router(zones: ZoneStore, zone: &'static str) -> Router {
    let panel = Panel { zones, zone };
    Router::new()
        .route("/", get(show))
        .route("/style.css", get(style))
        .route("/add", post(add))
        .route("/delete", post(delete))
        .with_state(panel)
}

/// The portal's own sheet: the page is part of the family.
async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("../../templates/style.css"))
}

async fn show(State(panel): State<Panel>) -> Response {
    panel.page(StatusCode::OK, Typed::default(), None)
}

async fn add(State(panel): State<Panel>, Form(typed): Form<Typed>) -> Response {
    match panel.zones.add(&line(panel.zone, &typed)) {
        Ok(_) => Redirect::to("/").into_response(),
        Err(error) => panel.page(StatusCode::UNPROCESSABLE_ENTITY, typed, Some(Chain(&error).to_string())),
    }
}

async fn delete(State(panel): State<Panel>, Form(deleted): Form<Deleted>) -> Response {
    match panel.zones.remove(&deleted.line) {
        Ok(()) => Redirect::to("/").into_response(),
        Err(error) => panel.page(StatusCode::UNPROCESSABLE_ENTITY, Typed::default(), Some(Chain(&error).to_string())),
    }
}

impl Panel {
    fn page(&self, status: StatusCode, typed: Typed, trouble: Option<String>) -> Response {
        let records = self.zones.records(self.zone).iter().map(|line| shown(self.zone, line)).collect();
        let page = Page { zone: self.zone, records, kinds: KINDS, typed, trouble };
        match page.render() {
            Ok(html) => (status, Html(html)).into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

/// A zone line (`name ttl IN type value`) in columns.
fn shown(zone: &str, line: &str) -> Line {
    let mut parts = line.splitn(5, ' ');
    let mut next = || parts.next().unwrap_or_default().to_owned();
    let (owner, _ttl, _class, kind, value) = (next(), next(), next(), next(), next());
    let name = name::host_field(owner.trim_end_matches('.'), zone);
    let fixed = name == "@" && (kind == "SOA" || kind == "NS") || owner.starts_with("ns1.");
    Line { line: line.to_owned(), name, kind, value, fixed }
}

/// The line that a filled form means: names are taken relative to the zone unless they end in it, texts get their quotes.
fn line(zone: &str, typed: &Typed) -> String {
    let name = typed.name.trim().trim_end_matches('.').to_ascii_lowercase();
    let owner = match name.as_str() {
        "" | "@" => zone.to_owned(),
        name if name::within(name, zone) => name.to_owned(),
        name => format!("{name}.{zone}"),
    };
    let value = typed.value.trim();
    let value = if typed.kind == "TXT" && !value.starts_with('"') {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        value.to_owned()
    };
    format!("{owner}. 60 IN {} {value}", typed.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(name: &str, kind: &str, value: &str) -> String {
        line("acme.test", &Typed { name: name.into(), kind: kind.into(), value: value.into() })
    }

    #[test]
    fn a_form_is_read_as_people_fill_it() {
        let txt = "_nameplate-challenge.support.acme.test. 60 IN TXT \"nameplate-verify=0f\"";
        for name in [
            "_nameplate-challenge.support",
            "_nameplate-challenge.support.acme.test",
            " _Nameplate-challenge.support.acme.test. ",
        ] {
            assert_eq!(typed(name, "TXT", "nameplate-verify=0f"), txt);
        }
        assert_eq!(typed("@", "A", "127.0.0.1"), "acme.test. 60 IN A 127.0.0.1");
        assert_eq!(typed("x", "TXT", r#"a "b" \"#), r#"x.acme.test. 60 IN TXT "a \"b\" \\""#);
        let zones = ZoneStore::new();
        zones.add_zone("acme.test", "ns1.acme.test", std::net::Ipv4Addr::LOCALHOST.into());
        zones.add(txt).unwrap();
        let lines: Vec<Line> = zones.records("acme.test").iter().map(|l| shown("acme.test", l)).collect();
        let last = lines.iter().find(|l| l.kind == "TXT").unwrap();
        assert_eq!((last.name.as_str(), last.fixed), ("_nameplate-challenge.support", false));
        assert!(lines.iter().filter(|l| l.kind != "TXT").all(|l| l.fixed));
    }
}
