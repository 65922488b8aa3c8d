//! Edges that follow the feed, lag behind it and come back: what visitors of each name get.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::super::SimulationError;
use super::super::world::{BATCH, FRONT, HEARTBEAT};
use crate::app::App;
use crate::model::feed::{HostAction, Position};
use crate::model::hostname::Hostname;
use crate::model::id::{EdgeId, TenantId};
use crate::model::moment::Moment;
use crate::model::tenant::TenantStatus;
use crate::reach::{Answer, Place, Reach, ReachError, Reply, Served as Met};
use crate::store::edges;
use crate::store::feed::{self, Scope};
use crate::vault::distribution::Preflight;

/// How long a request is waited for that nobody answers.
const SILENT: Duration = Duration::from_secs(10);

/// What an edge has for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) tenant: TenantId,
    pub(super) serial: String,
    pub(super) not_after: Moment,
}

/// How an edge is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lag {
    /// It is not heard of.
    Silent,
    /// It is heard of, and takes nothing.
    Stuck,
}

/// One edge.
pub(super) struct Edge {
    id: EdgeId,
    cursor: Position,
    tokens: HashMap<String, String>,
    hosts: HashMap<String, Entry>,
    /// Tenants that have left: their names are answered as unknown ones.
    left: HashSet<TenantId>,
    lag: Option<(Lag, Moment)>,
}

impl Edge {
    pub(super) fn new(id: EdgeId, cursor: Position) -> Self {
        Edge { id, cursor, tokens: HashMap::new(), hosts: HashMap::new(), left: HashSet::new(), lag: None }
    }

    /// What a visitor of this name gets here; nothing where it is answered as an unknown one.
    pub(super) fn serves(&self, host: &str) -> Option<&Entry> {
        self.hosts.get(host).filter(|entry| !self.left.contains(&entry.tenant))
    }

    /// Whether it is up with the feed.
    pub(super) fn follows(&self) -> bool {
        self.lag.is_none()
    }
}

/// All of them; the first one never lags, and is where a public name leads to.
#[derive(Clone)]
pub(super) struct Fleet {
    edges: Arc<Mutex<Vec<Edge>>>,
    preflight: Arc<Preflight>,
    heard_at: Moment,
}

impl Fleet {
    pub(super) fn new(edges: Vec<Edge>, preflight: Preflight, heard_at: Moment) -> Self {
        Fleet { edges: Arc::new(Mutex::new(edges)), preflight: Arc::new(preflight), heard_at }
    }

    pub(super) fn edges(&self) -> MutexGuard<'_, Vec<Edge>> {
        self.edges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One of those that may lag is behind until then.
    pub(super) fn lag(&self, which: u64, how: Lag, until: Moment) {
        let mut edges = self.edges();
        let many = u64::try_from(edges.len()).unwrap_or(1).saturating_sub(1).max(1);
        let at = usize::try_from(1 + which % many).unwrap_or(1);
        if let Some(edge) = edges.get_mut(at) {
            edge.lag = Some((how, until));
        }
    }

    /// What the first edge answers to a CA that asks for a token.
    pub(super) fn answer(&self, token: &str) -> Option<String> {
        let edges = self.edges();
        let known = edges.first().and_then(|edge| edge.tokens.get(token).cloned());
        known.or_else(|| self.preflight.answer(token))
    }

    /// Whether an edge that is not heard of now would count no more at the next look.
    pub(super) fn is_due(&self, now: Moment) -> bool {
        self.heard_at + HEARTBEAT <= now
    }

    /// Numbers what was committed and lets every edge that does not lag take and confirm it. What is not due and brings no news
    /// is left out: nobody could tell the difference. Which names changed.
    pub(super) async fn follow(&mut self, app: &App, events_too: bool) -> Result<Vec<String>, SimulationError> {
        let (store, now) = (&app.store, app.env.now());
        let changes = feed::changes_wait(store).await?;
        if !changes && !self.is_due(now) && !events_too {
            return Ok(Vec::new());
        }
        while (changes || events_too) && feed::waits_for_a_number(store).await? {
            let mut tx = store.begin().await?;
            feed::number(&mut tx, "simulation", now, BATCH).await?;
            tx.commit().await?;
        }
        if !changes && !self.is_due(now) {
            return Ok(Vec::new());
        }
        self.heard_at = now;
        let mut tx = store.begin().await?;
        let position = feed::position(&mut tx).await?;
        let mut behind: Vec<(usize, EdgeId, Position)> = Vec::new();
        let mut acks = Vec::new();
        for (n, edge) in self.edges().iter_mut().enumerate() {
            edge.lag = edge.lag.filter(|(_, until)| *until > now);
            match edge.lag {
                Some((Lag::Silent, _)) => {}
                Some((Lag::Stuck, _)) => acks.push((edge.id.clone(), edge.cursor)),
                None => {
                    acks.push((edge.id.clone(), position));
                    if edge.cursor.seq < position.seq {
                        behind.push((n, edge.id.clone(), edge.cursor));
                    }
                }
            }
        }
        let mut touched = Vec::new();
        let mut read: HashMap<i64, Arc<News>> = HashMap::new();
        for (n, _, cursor) in behind {
            let news = match read.get(&cursor.seq) {
                Some(news) => Arc::clone(news),
                None => {
                    let news = Arc::new(News::read(&mut tx, Scope::Changes(cursor.seq, position.seq)).await?);
                    read.insert(cursor.seq, Arc::clone(&news));
                    news
                }
            };
            touched.extend(news.hosts.iter().map(|(host, _)| host.clone()));
            if let Some(edge) = self.edges().get_mut(n) {
                news.apply(edge);
                edge.cursor = position;
            }
        }
        for (id, cursor) in acks {
            edges::ack(&mut tx, &id, cursor, &[], now).await?;
        }
        tx.commit().await?;
        Ok(touched)
    }
}

/// A stretch of the feed.
struct News {
    tokens: Vec<(String, Option<String>)>,
    hosts: Vec<(String, Option<Entry>)>,
    tenants: Vec<(TenantId, bool)>,
}

impl News {
    async fn read(tx: &mut crate::store::Tx, scope: Scope) -> Result<News, SimulationError> {
        let challenges = feed::challenges(tx, scope).await?;
        let (hosts, certificates) = feed::hosts(tx, scope).await?;
        let tenants = feed::tenants(tx, scope).await?;
        let entry = |host: &crate::model::feed::HostEntry| {
            let certificate = certificates.iter().find(|c| Some(&c.id) == host.certificate_id.as_ref())?;
            Some(Entry {
                tenant: host.tenant_id.clone(),
                serial: certificate.serial.clone(),
                not_after: certificate.not_after,
            })
        };
        Ok(News {
            tokens: challenges.into_iter().map(|c| (c.token, c.key_authorization)).collect(),
            hosts: hosts
                .iter()
                .map(|host| (host.hostname.to_string(), entry(host).filter(|_| host.action == HostAction::Serve)))
                .collect(),
            tenants: tenants.into_iter().map(|t| (t.id, t.status == TenantStatus::Deleted.as_str())).collect(),
        })
    }

    fn apply(&self, edge: &mut Edge) {
        for (token, answer) in &self.tokens {
            match answer {
                Some(answer) => drop(edge.tokens.insert(token.clone(), answer.clone())),
                None => drop(edge.tokens.remove(token)),
            }
        }
        for (host, entry) in &self.hosts {
            match entry {
                Some(entry) => drop(edge.hosts.insert(host.clone(), entry.clone())),
                None => drop(edge.hosts.remove(host)),
            }
        }
        for (tenant, gone) in &self.tenants {
            if *gone {
                edge.left.insert(tenant.clone());
            }
        }
    }
}

#[async_trait]
impl Reach for Fleet {
    async fn served(&self, host: &Hostname, addresses: &[IpAddr]) -> Vec<Answer<Met>> {
        let serial = self.edges().first().and_then(|edge| edge.serves(host.as_str()).map(|entry| entry.serial.clone()));
        let outcome = |address: &IpAddr| match &serial {
            Some(serial) if *address == FRONT => Ok(Met { serial: serial.clone(), trusted: true, status: Some(200) }),
            _ => Err(ReachError::TimedOut(SILENT)),
        };
        addresses.iter().map(|address| Answer { address: *address, outcome: outcome(address) }).collect()
    }

    async fn ask(&self, place: &Place, addresses: &[IpAddr]) -> Vec<Answer<Reply>> {
        let said = self.answer(place.path.rsplit('/').next().unwrap_or_default());
        let status = if said.is_some() { 200 } else { 404 };
        let body = said.unwrap_or_default().into_bytes();
        let reply = Reply { status, server: None, sent: None, body, shown: None };
        let outcome = |address: &IpAddr| match *address == FRONT {
            true => Ok(reply.clone()),
            false => Err(ReachError::TimedOut(SILENT)),
        };
        addresses.iter().map(|address| Answer { address: *address, outcome: outcome(address) }).collect()
    }
}
