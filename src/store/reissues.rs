//! Replacements out of turn: what was asked for is one row, what is selected is marked from there in transactions of a page each,
//! and each mark goes with its certificate.
//!
//! Rows are locked in the order in which steps lock them: the replacement's own row, then domains in the order of their ids, then
//! what hangs on them.

use serde::{Deserialize, Serialize};

use super::record::{document, nudge};
use super::{Row, Stmt, Store, StoreResult, Tx, alerts, sql};
use crate::model::hostname::Hostname;
use crate::model::id::{CertificateId, DomainId, EventId, ReissueId, TenantId};
use crate::model::moment::Moment;
use crate::model::outcome::NewEvent;

/// Which certificates in use are to be replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// All of an issuer, by its name.
    Issuer(String),
    /// Those with these serial numbers: lower-case hex, whole octets.
    Serials(Vec<String>),
    /// Those that became valid before this.
    Before(Moment),
}

/// A certificate in use of a live name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct Selected {
    pub domain_id: DomainId,
    pub certificate_id: CertificateId,
    pub tenant_id: TenantId,
    pub hostname: Hostname,
}

/// So many are read and marked at once.
const PAGE: usize = 100;
/// So many serial numbers are asked for at once: as many as the statement has places.
const SERIALS: usize = 8;
/// How many statements go into one round trip.
const CHUNK: usize = 20;

/// A page of what is selected.
#[derive(Clone, Debug, Default)]
pub struct Selecting {
    /// In the order of their domains.
    pub these: Vec<Selected>,
    /// Where the next page begins; nothing after the last.
    pub next: Option<String>,
}

/// A page of what was selected at that moment and is not on its way already, from where the page before ended (the first: from
/// nothing). Certificates that came since are none of it.
pub async fn select(store: &Store, selection: &Selection, at: Moment, from: &str) -> StoreResult<Selecting> {
    match selection {
        Selection::Issuer(name) => {
            let stmt = sql("SELECT d.id AS domain_id, d.tenant_id, d.hostname, c.id AS certificate_id \
                   FROM renewals r JOIN domains d ON d.id = r.domain_id \
                   JOIN certificates c ON c.id = r.certificate_id JOIN issuers i ON i.id = c.issuer_id \
                 WHERE d.claim = 'live' AND d.certificate_id = r.certificate_id AND r.reissue_id IS NULL AND c.stored_at <= $4 \
                   AND i.name = $1 AND r.domain_id > $2 ORDER BY r.domain_id LIMIT $3");
            page(store, stmt.bind(name.as_str()).bind(from).bind(limit()).bind(at)).await
        }
        Selection::Before(before) => {
            let stmt = sql("SELECT d.id AS domain_id, d.tenant_id, d.hostname, c.id AS certificate_id \
                   FROM renewals r JOIN domains d ON d.id = r.domain_id JOIN certificates c ON c.id = r.certificate_id \
                 WHERE d.claim = 'live' AND d.certificate_id = r.certificate_id AND r.reissue_id IS NULL AND c.stored_at <= $4 \
                   AND c.source = 'order' AND c.not_before < $1 AND r.domain_id > $2 ORDER BY r.domain_id LIMIT $3");
            page(store, stmt.bind(*before).bind(from).bind(limit()).bind(at)).await
        }
        Selection::Serials(serials) => by_serial(store, serials, from).await,
    }
}

fn limit() -> i64 {
    i64::try_from(PAGE).unwrap_or(i64::MAX)
}

async fn page(store: &Store, stmt: Stmt) -> StoreResult<Selecting> {
    let these: Vec<Selected> = store.query(stmt).await?.iter().map(selected).collect::<StoreResult<_>>()?;
    let next = these.last().filter(|_| these.len() == PAGE).map(|last| last.domain_id.to_string());
    Ok(Selecting { these, next })
}

/// Here the page before ended after so many numbers of the list.
async fn by_serial(store: &Store, serials: &[String], from: &str) -> StoreResult<Selecting> {
    let done = from.parse().unwrap_or(0_usize).min(serials.len());
    let of_page = &serials[done..(done + PAGE).min(serials.len())];
    let mut these = Vec::new();
    for chunk in of_page.chunks(SERIALS) {
        let some = sql("SELECT d.id AS domain_id, d.tenant_id, d.hostname, c.id AS certificate_id FROM certificates c \
               JOIN renewals r ON r.certificate_id = c.id AND r.domain_id = c.domain_id JOIN domains d ON d.id = r.domain_id \
             WHERE c.serial IN ($1, $2, $3, $4, $5, $6, $7, $8) AND c.destroyed_at IS NULL \
               AND d.claim = 'live' AND d.certificate_id = r.certificate_id AND r.reissue_id IS NULL");
        // The places that are left ask for the last one again.
        let stmt = (0..SERIALS).fold(some, |stmt, n| stmt.bind(chunk[n.min(chunk.len() - 1)].as_str()));
        for row in store.query(stmt).await? {
            these.push(selected(&row)?);
        }
    }
    these.sort_by(|a: &Selected, b| a.domain_id.cmp(&b.domain_id));
    these.dedup();
    let end = done + of_page.len();
    Ok(Selecting { these, next: (end < serials.len()).then(|| end.to_string()) })
}

fn selected(row: &Row) -> StoreResult<Selected> {
    Ok(Selected {
        domain_id: row.parse("domain_id")?,
        certificate_id: row.parse("certificate_id")?,
        tenant_id: row.parse("tenant_id")?,
        hostname: Hostname::trusted(&row.text("hostname")?),
    })
}

/// Writes down that a replacement is asked for; nothing is selected yet.
pub async fn create(
    tx: &mut Tx,
    id: &ReissueId,
    in_words: &str,
    wanted: &Selection,
    hurries: bool,
    actor: &str,
    now: Moment,
) -> StoreResult<()> {
    let stmt = sql("INSERT INTO reissues (id, selection, wanted, actor, certificates, created_at, marking, hurries) \
         VALUES ($1, $2, $3, $4, 0, $5, '', $6)")
    .bind(id.as_str())
    .bind(in_words)
    .bind(document(wanted)?)
    .bind(actor)
    .bind(now)
    .bind(i64::from(hurries));
    tx.execute(stmt).await.map(|_| ())
}

/// Marks one page of a replacement, each due at its moment, and moves on to `next`. `false`: somebody else marked it meanwhile, or
/// gave the whole up; nothing was written.
pub async fn mark(
    store: &Store,
    id: &ReissueId,
    from: &str,
    next: Option<&str>,
    these: &[(Selected, Moment)],
) -> StoreResult<bool> {
    let mut tx = store.begin().await?;
    let ours = sql("UPDATE reissues SET marking = $3 WHERE id = $1 AND marking = $2 AND cancelled_at IS NULL")
        .bind(id.as_str())
        .bind(from)
        .bind(next);
    if tx.execute(ours).await? == 0 {
        return Ok(false);
    }
    let mut marked = 0;
    for chunk in these.chunks(CHUNK) {
        tx.batch(chunk.iter().map(|(s, at)| nudge_live(&s.domain_id, *at)).collect()).await?;
        // An order that the CA may know of already was not placed for this.
        let mark = |(s, _): &(Selected, Moment)| {
            sql(
                "UPDATE renewals SET reissue_id = $3, reissue_past = (SELECT min(o.id) FROM orders o WHERE o.domain_id = $1 \
                   AND o.state NOT IN ('issued', 'failed', 'lost') AND (o.state NOT IN ('waiting', 'granted') \
                     OR EXISTS (SELECT 1 FROM grants g WHERE g.order_id = o.id AND g.state = 'used'))) \
                 WHERE domain_id = $1 AND certificate_id = $2 AND reissue_id IS NULL",
            )
            .bind(s.domain_id.as_str())
            .bind(s.certificate_id.as_str())
            .bind(id.as_str())
        };
        marked += tx.batch(chunk.iter().map(mark).collect()).await?.iter().sum::<u64>();
    }
    let count = sql("UPDATE reissues SET certificates = certificates + $2, finished_at = NULL WHERE id = $1");
    tx.execute(count.bind(id.as_str()).bind(i64::try_from(marked).unwrap_or(i64::MAX))).await?;
    tx.commit().await?;
    Ok(true)
}

fn nudge_live(id: &DomainId, at: Moment) -> Stmt {
    sql("UPDATE domains SET due_at = CASE WHEN due_at > $2 THEN $2 ELSE due_at END, nudged = generation \
         WHERE id = $1 AND claim = 'live'")
    .bind(id.as_str())
    .bind(at)
}

/// One replacement out of turn, and how far it is.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct ReissueRow {
    pub id: String,
    pub selection: String,
    pub wanted: Option<Selection>,
    pub hurries: bool,
    pub actor: String,
    pub certificates: i64,
    pub given_up: i64,
    pub marking: Option<String>,
    pub created_at: Moment,
    pub cancelled_at: Option<Moment>,
    pub finished_at: Option<Moment>,
    /// Those that are not replaced yet.
    pub left: i64,
}

fn read(row: &Row) -> StoreResult<ReissueRow> {
    Ok(ReissueRow {
        id: row.text("id")?,
        selection: row.text("selection")?,
        wanted: row.opt_json("wanted")?,
        hurries: row.int("hurries")? == 1,
        actor: row.text("actor")?,
        certificates: row.int("certificates")?,
        given_up: row.int("given_up")?,
        marking: row.opt_text("marking")?,
        created_at: row.moment("created_at")?,
        cancelled_at: row.opt_moment("cancelled_at")?,
        finished_at: row.opt_moment("finished_at")?,
        left: row.int("left_over")?,
    })
}

/// A page of them, the latest first, before this id (the first page: before nothing).
pub async fn list(store: &Store, before: &str, limit: i64) -> StoreResult<Vec<ReissueRow>> {
    let query = sql("SELECT x.*, (SELECT count(*) FROM renewals r JOIN domains d ON d.id = r.domain_id \
           WHERE r.reissue_id = x.id AND d.claim = 'live') AS left_over FROM reissues x \
         WHERE $1 = '' OR x.id < $1 ORDER BY x.id DESC LIMIT $2");
    store.query(query.bind(before).bind(limit)).await?.iter().map(read).collect()
}

/// One of them.
pub async fn find(store: &Store, id: &str) -> StoreResult<Option<ReissueRow>> {
    let query = sql("SELECT x.*, (SELECT count(*) FROM renewals r JOIN domains d ON d.id = r.domain_id \
           WHERE r.reissue_id = x.id AND d.claim = 'live') AS left_over FROM reissues x WHERE x.id = $1");
    store.query(query.bind(id)).await?.first().map(read).transpose()
}

/// Those of which something is still to be done: to be selected, to be replaced, to be given up.
pub async fn open(store: &Store) -> StoreResult<Vec<ReissueRow>> {
    let query = sql("SELECT x.*, (SELECT count(*) FROM renewals r WHERE r.reissue_id = x.id) AS left_over FROM reissues x \
         WHERE x.finished_at IS NULL ORDER BY x.id");
    store.query(query).await?.iter().map(read).collect()
}

/// A name whose certificate is to be replaced, and how far that is.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct Marked {
    pub domain_id: DomainId,
    pub tenant_id: TenantId,
    pub hostname: Hostname,
    pub due_at: Moment,
    pub tied: bool,
    /// State of its open order, since when, and whether it is held back until its checks pass.
    pub order: Option<(String, Moment, bool)>,
}

/// So many are read at once.
const MARKED: usize = 1_000;

/// What is left of a replacement.
pub async fn marked(store: &Store, id: &str) -> StoreResult<Vec<Marked>> {
    let mut all: Vec<Marked> = Vec::new();
    loop {
        let query =
            sql("SELECT d.id, d.tenant_id, d.hostname, d.due_at, d.tie, o.state AS o_state, o.created_at AS o_since, \
               o.not_before AS o_not_before \
             FROM renewals r JOIN domains d ON d.id = r.domain_id \
               LEFT JOIN orders o ON o.domain_id = d.id AND o.state NOT IN ('issued', 'failed', 'lost') \
             WHERE r.reissue_id = $1 AND r.domain_id > $2 AND d.claim = 'live' ORDER BY r.domain_id LIMIT $3")
            .bind(id)
            .bind(all.last().map_or("", |m| m.domain_id.as_str()))
            .bind(i64::try_from(MARKED).unwrap_or(i64::MAX));
        let rows = store.query(query).await?;
        for row in &rows {
            let order = match row.opt_text("o_state")? {
                Some(state) => Some((state, row.moment("o_since")?, row.moment("o_not_before")? == Moment::NEVER)),
                None => None,
            };
            all.push(Marked {
                domain_id: row.parse("id")?,
                tenant_id: row.parse("tenant_id")?,
                hostname: Hostname::trusted(&row.text("hostname")?),
                due_at: row.moment("due_at")?,
                tied: row.text("tie")? != "lost",
                order,
            });
        }
        if rows.len() < MARKED {
            return Ok(all);
        }
    }
}

/// What came of giving one up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// It is given up from now on.
    Now,
    /// There is none of this id.
    Unknown,
    /// It was given up, or done, before.
    Over,
}

/// Says that it is given up, with its event. What is marked is let go of by [`unmark`].
pub async fn give_up(tx: &mut Tx, id: &str, event: &EventId, news: &NewEvent, now: Moment) -> StoreResult<GivenUp> {
    let stmt = sql("UPDATE reissues SET cancelled_at = $2, marking = NULL \
         WHERE id = $1 AND cancelled_at IS NULL AND finished_at IS NULL");
    if tx.execute(stmt.bind(id).bind(now)).await? == 1 {
        tx.execute(alerts::event(event, None, news, now)).await?;
        return Ok(GivenUp::Now);
    }
    let known = tx.fetch_optional(sql("SELECT id FROM reissues WHERE id = $1").bind(id)).await?;
    Ok(known.map_or(GivenUp::Unknown, |_| GivenUp::Over))
}

/// Takes a page of marks away from one that is given up: what has not reached the CA ends in its domain's next step. Whether there
/// are more.
pub async fn unmark(store: &Store, id: &str, now: Moment) -> StoreResult<bool> {
    let mut tx = store.begin().await?;
    tx.execute(sql("UPDATE reissues SET given_up = given_up WHERE id = $1").bind(id)).await?;
    let page = sql("SELECT domain_id FROM renewals WHERE reissue_id = $1 ORDER BY domain_id LIMIT $2");
    let rows = tx.fetch_all(page.bind(id).bind(limit())).await?;
    let domains: Vec<DomainId> = rows.iter().map(|row| row.parse("domain_id")).collect::<StoreResult<_>>()?;
    let mut given_up = 0;
    for chunk in domains.chunks(CHUNK) {
        tx.batch(chunk.iter().map(|d| nudge(d.as_str(), now)).collect()).await?;
        let clear = |d: &DomainId| {
            sql("UPDATE renewals SET reissue_id = NULL, reissue_past = NULL WHERE domain_id = $1 AND reissue_id = $2")
                .bind(d.as_str())
                .bind(id)
        };
        given_up += tx.batch(chunk.iter().map(clear).collect()).await?.iter().sum::<u64>();
    }
    let over = domains.len() < PAGE;
    let count = sql(
        "UPDATE reissues SET given_up = given_up + $2, finished_at = CASE WHEN $3 = 1 THEN $4 ELSE NULL END WHERE id = $1",
    )
    .bind(id)
    .bind(i64::try_from(given_up).unwrap_or(i64::MAX))
    .bind(over)
    .bind(now);
    tx.execute(count).await?;
    tx.commit().await?;
    Ok(!over)
}

/// Everything of it is replaced: says so once, where that is so still.
pub async fn finish(store: &Store, id: &str, event: &EventId, news: &NewEvent, now: Moment) -> StoreResult<bool> {
    let mut tx = store.begin().await?;
    let stmt = sql("UPDATE reissues SET finished_at = $2 WHERE id = $1 AND finished_at IS NULL AND cancelled_at IS NULL \
         AND marking IS NULL AND NOT EXISTS (SELECT 1 FROM renewals r WHERE r.reissue_id = $1)");
    if tx.execute(stmt.bind(id).bind(now)).await? == 0 {
        return Ok(false);
    }
    tx.execute(alerts::event(event, None, news, now)).await?;
    tx.commit().await?;
    Ok(true)
}

/// What begins is told.
pub async fn tell(tx: &mut Tx, event: &EventId, news: &NewEvent, now: Moment) -> StoreResult<()> {
    tx.execute(alerts::event(event, None, news, now)).await.map(|_| ())
}
