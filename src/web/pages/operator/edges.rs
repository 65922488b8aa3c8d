//! `GET /operator/edges`: every edge with its cursor, and the certificates that one has and does not serve.

use askama::Template;
use axum::extract::State;
use axum::response::Html;

use super::{Operator, When, grouped};
use crate::app::fleet::{self, EdgeView};
use crate::model::moment::Moment;
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts::operator as o;
use crate::web::visible::{cut, visible};

/// So many edges are shown.
const EDGES: usize = 100;

/// An edge, as a table shows it.
pub(super) struct EdgeLine {
    pub(super) name: String,
    pub(super) state: &'static str,
    pub(super) tone: &'static str,
    pub(super) counted: bool,
    pub(super) heartbeat: When,
    pub(super) copy: String,
    pub(super) behind: String,
}

impl EdgeLine {
    pub(super) fn of(edge: &EdgeView, now: Moment) -> EdgeLine {
        let (state, tone) = match edge.state() {
            "fine" => (o::up_to_date(), "good"),
            "behind" => (o::catching_up(), "wait"),
            "silent" => (o::silent(), "act"),
            "lost" => (o::left_behind(), "act"),
            "drained" => (o::drained(), "off"),
            other => (other, "off"),
        };
        EdgeLine {
            name: visible(&edge.row.name),
            state,
            tone,
            counted: edge.counted,
            heartbeat: When::at(edge.row.heartbeat_at, now),
            copy: format!("{} / {}", edge.row.cursor.epoch, grouped(edge.row.cursor.seq)),
            behind: match edge.behind {
                Some(0) => o::none().to_owned(),
                Some(1) => o::one_change().to_owned(),
                Some(n) => o::n_changes(grouped(n)).plain(),
                None => o::other_epoch().to_owned(),
            },
        }
    }
}

struct ExceptionLine {
    edge: String,
    domain_id: Option<String>,
    hostname: String,
    serial: String,
    observed: String,
    at: When,
}

#[derive(Template)]
#[template(path = "operator/edges.html")]
struct Page {
    here: &'static str,
    edges: Vec<EdgeLine>,
    edge_count: usize,
    head: String,
    exceptions: Vec<ExceptionLine>,
}

/// `GET /operator/edges`
pub(in crate::web) async fn show(State(state): State<WebState>, _: Operator) -> Result<Html<String>, Problem> {
    let edges = fleet::edges(&state.app).await?;
    let now = edges.now;
    let exceptions = edges.exceptions.iter().map(|x| ExceptionLine {
        edge: visible(&x.edge),
        domain_id: x.domain_id.as_ref().map(ToString::to_string),
        hostname: x.hostname.as_ref().map_or_else(|| "-".to_owned(), |name| name.display()),
        serial: x.serial.clone(),
        observed: cut(&visible(&x.observed), 200),
        at: When::at(x.at, now),
    });
    let page = Page {
        here: "edges",
        edge_count: edges.edges.len(),
        head: format!("{} / {}", edges.head.0, grouped(edges.head.1)),
        edges: edges.edges.iter().take(EDGES).map(|e| EdgeLine::of(e, now)).collect(),
        exceptions: exceptions.collect(),
    };
    html(&page)
}
