//! The edges as the control plane knows them.

use crate::app::App;
use crate::model::conclude::FRESH_EDGE;
use crate::model::moment::Moment;
use crate::store::StoreResult;
use crate::store::edges::{self, EdgeRow, EdgeStatus};
use crate::store::fleet::one::{self, ExceptionRow};

/// So many certificates that edges do not serve are shown.
const EXCEPTIONS: i64 = 50;

/// An edge.
#[derive(Clone, Debug)]
pub struct EdgeView {
    /// Its row.
    pub row: EdgeRow,
    /// Whether orders and rollouts wait for it.
    pub counted: bool,
    /// Changes it has not confirmed; nothing where its copy is of another epoch.
    pub behind: Option<i64>,
}

impl EdgeView {
    /// What is wrong with it, in one word: `fine`, `behind`, `silent`, `lost`, `drained`.
    pub fn state(&self) -> &'static str {
        match (self.row.status, self.row.lost_at, self.counted, self.behind) {
            (EdgeStatus::Revoked, ..) => "revoked",
            (EdgeStatus::Drained, ..) => "drained",
            (_, Some(_), ..) => "lost",
            (_, None, false, _) => "silent",
            (_, None, true, Some(0)) => "fine",
            (_, None, true, _) => "behind",
        }
    }
}

/// All edges that are not shut out.
#[derive(Clone, Debug)]
pub struct Edges {
    /// The edges, in order of their names.
    pub edges: Vec<EdgeView>,
    /// The feed's epoch and last number.
    pub head: (i64, i64),
    /// Certificates that edges have and do not serve.
    pub exceptions: Vec<ExceptionRow>,
    /// When this was read.
    pub now: Moment,
}

impl Edges {
    /// How many count.
    pub fn counted(&self) -> usize {
        self.edges.iter().filter(|e| e.counted).count()
    }

    /// How many that should serve are not in order.
    pub fn in_trouble(&self) -> usize {
        self.edges.iter().filter(|e| matches!(e.state(), "silent" | "lost")).count()
    }
}

/// The edges now.
pub async fn edges(app: &App) -> StoreResult<Edges> {
    let now = app.env.now();
    let rows = edges::list(&app.store).await?;
    let mut tx = app.store.read().await?;
    let head = one::feed_head(&mut tx).await?.unwrap_or_default();
    let exceptions = one::exceptions(&mut tx, EXCEPTIONS).await?;
    let mut all: Vec<EdgeView> = rows
        .into_iter()
        .filter(|row| row.status != EdgeStatus::Revoked)
        .map(|row| EdgeView {
            counted: row.status == EdgeStatus::Active && row.lost_at.is_none() && row.heartbeat_at > now - FRESH_EDGE,
            behind: (row.cursor.epoch == head.0).then(|| (head.1 - row.cursor.seq).max(0)),
            row,
        })
        .collect();
    all.sort_by(|a, b| a.row.name.cmp(&b.row.name));
    Ok(Edges { edges: all, head, exceptions, now })
}
