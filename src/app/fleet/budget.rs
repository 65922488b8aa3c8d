//! What the CAs still let us spend, from the rows of the ledger, and how the CAs are.

use super::queue::{IssuerQueue, Queued};
use super::snapshot::played;
use crate::app::App;
use crate::model::issuer::{Circuit, Health};
use crate::model::ledger::{Bucket, Limit};
use crate::model::limits::{Closed, LimitName};
use crate::model::moment::Moment;
use crate::store::fleet::queue::{self, LedgerRow};
use crate::store::issuers::{self, IssuerRow};
use crate::store::{StoreResult, issuer_health};

/// So many rows of an issuer's ledger are shown: the account's, what the CA closed, and the emptiest.
const LEDGER_ROWS: i64 = 30;

/// One limit and key.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// The limit.
    pub limit_name: LimitName,
    /// The key.
    pub key: String,
    /// How many may be spent at once, and how often.
    pub limit: Limit,
    /// Whether configuration knows of it; else the CA refused for a limit that it is said not to have.
    pub is_known: bool,
    /// How many may be spent now.
    pub left: u32,
    /// Calls whose answers are not known.
    pub open: u32,
    /// When one more may be spent; now, where some are left.
    pub next_at: Moment,
    /// When all may be spent again, if nothing more is.
    pub full_at: Moment,
    /// How many orders wait for room here.
    pub waiting: usize,
    /// The first of them, soonest first.
    pub first: Vec<Queued>,
    /// Why the CA closed it, if it did and it is closed still.
    pub closed: Option<Shut>,
}

/// A limit that the CA closed although we had not used it up.
#[derive(Clone, Debug)]
pub struct Shut {
    /// What it means.
    pub why: Closed,
    /// The CA's words.
    pub said: String,
    /// Where the CA says more, or lets the operator lift it.
    pub link: Option<String>,
    /// When it said so.
    pub at: Moment,
}

/// The budget at one issuer.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The issuer.
    pub issuer: String,
    /// Its directory.
    pub directory: String,
    /// Whether new orders may go there.
    pub in_use: bool,
    /// Whether it has an account.
    pub has_account: bool,
    /// Why there is none yet.
    pub account_problem: Option<String>,
    /// Whether it was added by command, not by configuration.
    pub is_added: bool,
    /// Whether it may be asked.
    pub circuit: Circuit,
    /// Why an operator must see to it.
    pub halted: Option<String>,
    /// Its last failure, and when that was.
    pub trouble: Option<(String, Moment)>,
    /// The CA lets nothing through before, where that is still to come.
    pub paused_until: Option<Moment>,
    /// Its limits.
    pub tokens: Vec<Tokens>,
}

/// The budgets of all issuers, the preferred first.
pub async fn budgets(app: &App) -> StoreResult<Vec<Budget>> {
    let now = app.env.now();
    let issuers = issuers::list(&app.store).await?;
    let mut health = issuer_health::all(&app.store).await?;
    let mut tx = app.store.read().await?;
    let mut ledgers = Vec::with_capacity(issuers.len());
    for issuer in &issuers {
        ledgers.push(queue::ledger(&mut tx, &issuer.id, LEDGER_ROWS).await?);
    }
    drop(tx);
    // Last: what is begun in passing takes nothing from a page that has all else.
    let played = played(app).await?;
    let with = |(issuer, rows): (IssuerRow, Vec<LedgerRow>)| {
        let queue = played.queues.iter().find(|q| q.issuer == issuer.name);
        let health = health.remove(&issuer.id).unwrap_or_default();
        budget(issuer, rows, health, queue, now)
    };
    Ok(issuers.into_iter().zip(ledgers).map(with).collect())
}

fn budget(issuer: IssuerRow, rows: Vec<LedgerRow>, health: Health, queue: Option<&IssuerQueue>, now: Moment) -> Budget {
    let limits = &issuer.limits;
    let tokens: Vec<Tokens> =
        rows.into_iter().filter_map(|row| tokens(limits.get(&row.limit).copied(), row, queue, now)).collect();
    let account = tokens.iter().find(|t| t.limit_name == LimitName::OrdersPerAccount);
    let closed = account.filter(|t| t.closed.is_some()).map(|t| t.next_at);
    let circuit = health.circuit(now);
    let open = if let Circuit::Open(until) = circuit { Some(until) } else { None };
    Budget {
        in_use: issuer.is_in_use(),
        has_account: issuer.account_url.is_some(),
        is_added: issuer.is_added(),
        issuer: issuer.name,
        directory: issuer.directory,
        account_problem: issuer.account_problem,
        circuit,
        halted: health.halted,
        trouble: health.said.zip(health.at),
        paused_until: [Some(issuer.not_before), open, closed].into_iter().flatten().max().filter(|at| *at > now),
        tokens,
    }
}

/// Of a limit that is not configured nothing is counted: it is told of while the CA refuses for it.
const UNKNOWN: Limit = Limit { burst: 0, per_secs: 0 };

fn tokens(known: Option<Limit>, row: LedgerRow, queue: Option<&IssuerQueue>, now: Moment) -> Option<Tokens> {
    let (is_known, limit) = (known.is_some(), known.unwrap_or(UNKNOWN));
    let closed_until = row.closed.and(row.closed_until).unwrap_or_default();
    if !is_known && closed_until <= now {
        return None;
    }
    let (waiting, first) = queue.map(|q| q.waiting_for(row.limit, &row.key)).unwrap_or_default();
    let tat = if is_known { row.tat } else { closed_until };
    let bucket = Bucket { tat, open: u32::try_from(row.open).unwrap_or(u32::MAX), closed_until };
    let left = bucket.available(limit, now);
    let shut = |why| Shut { why, said: row.said.unwrap_or_default(), link: row.link, at: row.closed_at.unwrap_or(now) };
    Some(Tokens {
        is_known,
        closed: row.closed.filter(|_| left == 0).map(shut),
        limit_name: row.limit,
        key: row.key,
        limit,
        left,
        open: bucket.open,
        next_at: bucket.earliest(limit, now),
        full_at: bucket.tat.max(now) + limit.interval() * bucket.open,
        waiting,
        first,
    })
}

impl Budget {
    /// How it is, in one stable word.
    pub fn state(&self) -> &'static str {
        match (self.in_use, self.has_account) {
            (false, _) => "not_in_use",
            (true, false) => "no_account",
            (true, true) => self.circuit.word(),
        }
    }

    /// What an operator can do about it; nothing where all is well or goes on by itself.
    pub fn to_do(&self) -> Option<String> {
        let name = &self.issuer;
        if !self.in_use {
            return Some(match self.is_added {
                true => format!(
                    "No new order goes there: it was removed. To use it again: nameplate issuer add {name} --directory {}",
                    self.directory
                ),
                false => format!(
                    "No new order goes there: the configuration does not name it any more. To use it again, put issuers.{name} \
                     back and start `nameplate serve` again."
                ),
            });
        }
        if self.halted.is_some() {
            return Some(format!("When it is mended, orders go on with: nameplate issuer test {name}"));
        }
        if !self.has_account {
            return Some(match self.account_problem {
                Some(_) => format!("It is asked for again by itself; what to mend says: nameplate issuer test {name}"),
                None => format!(
                    "A running `nameplate serve` opens it within seconds. If it does not: nameplate issuer test {name}"
                ),
            });
        }
        None
    }
}
