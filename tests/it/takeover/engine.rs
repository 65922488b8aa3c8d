//! The walk through the whole engine: real use cases on a store, scripted DNS, a CA, a clock driven by hand, workers that die and an
//! edge that comes late. The same judge as over the pure walk.

use std::path::PathBuf;
use std::time::Duration;

use nameplate::app::{self, expect::Expect};
use nameplate::dns::world::{Fault, How};
use nameplate::model::claim::Claim;
use nameplate::model::id::{DomainId, TenantId};
use nameplate::model::limits::Counted;
use nameplate::store::{self, OpenSettings, Store, sql};

use super::oracle::{Oracle, Stands};
use crate::support::book::KeptBook;
use crate::support::rig::Rig;

const HOUR: Duration = Duration::from_secs(3600);
/// An apex, whose record alone ties it, and names beneath each other.
const NAMES: [&str; 3] = ["shop.acme.test", "eu.shop.acme.test", "beta.test"];
const APEX: &str = "beta.test";
const SLUGS: [&str; 3] = ["acme", "beta", "gamma"];
/// Nothing is due for so long at the most: routine looks are made at least so often.
const STRIDE: Duration = Duration::from_secs(4 * 3600);

/// A copy of the database, and what was so when it was made.
struct Copy {
    file: PathBuf,
    tenants: usize,
}

/// The walk.
pub struct Walk {
    pub rig: Rig,
    pub oracle: Oracle,
    tenants: Vec<(TenantId, String)>,
    /// Every tenant there was, by its number with the judge.
    numbers: Vec<TenantId>,
    claims: Vec<(DomainId, &'static str, usize)>,
    /// An edge that follows when it likes.
    late: KeptBook,
    outage: bool,
    dir: tempfile::TempDir,
    copy: Option<Copy>,
    /// Names that edges serve with what the restored database does not have, and the orders for them until then.
    remembered: Option<Vec<(&'static str, usize)>>,
    pub restores: usize,
    pub turns: usize,
    pub caught_up: usize,
    story: Vec<String>,
}

impl Walk {
    pub async fn new(seed: u64) -> Walk {
        let dir = tempfile::tempdir().unwrap();
        let rig = Rig::on(seed, &format!("sqlite:{}", dir.path().join("0.db").display())).await;
        rig.stride(STRIDE);
        rig.also_zone(APEX);
        let (oracle, story) = (Oracle::default(), vec![format!("seed {seed}")]);
        let (tenants, numbers, claims) = (Vec::new(), Vec::new(), Vec::new());
        let mut walk = Walk {
            rig,
            oracle,
            tenants,
            numbers,
            claims,
            late: KeptBook::default(),
            outage: false,
            dir,
            copy: None,
            remembered: None,
            restores: 0,
            turns: 0,
            caught_up: 0,
            story,
        };
        for slug in SLUGS {
            walk.sign_up(slug).await;
        }
        walk.oracle.until(walk.rig.env.now());
        walk
    }

    async fn sign_up(&mut self, slug: &str) -> usize {
        let id = self.rig.tenant(slug).await;
        self.numbers.push(id.clone());
        self.tenants.push((id, slug.to_owned()));
        self.tenants.len() - 1
    }

    fn draw(&self, below: usize) -> usize {
        usize::try_from(self.rig.hand.below(u64::try_from(below).unwrap())).unwrap()
    }

    fn said(&mut self, what: String) {
        self.story.push(format!("{} {what}", self.rig.env.now()));
        if self.story.len() > 80 {
            self.story.drain(1..20);
        }
    }

    /// The zones as the judge has them become those that are looked at.
    fn publish(&self, name: &str, before: &super::oracle::Zone) {
        let zone = &self.oracle.zones[name];
        let label = format!("_nameplate-challenge.{name}");
        for value in before.values.difference(&zone.values) {
            self.rig.zones.remove(&format!("{label}. 60 IN TXT \"{value}\"")).unwrap();
        }
        for value in zone.values.difference(&before.values) {
            self.rig.zones.add(&format!("{label}. 60 IN TXT \"{value}\"")).unwrap();
        }
        let line = |way: &str| match (name, way.ends_with(".app.example")) {
            (APEX, true) => format!("{name}. 60 IN A 192.0.2.80"),
            (APEX, false) => format!("{name}. 60 IN A 198.51.100.7"),
            _ => format!("{name}. 60 IN CNAME {way}."),
        };
        if before.way != zone.way {
            if let Some(way) = &before.way {
                self.rig.zones.remove(&line(way)).unwrap();
            }
            if let Some(way) = &zone.way {
                self.rig.zones.add(&line(way)).unwrap();
            }
        }
        let mut faults = Vec::new();
        for (name, _) in self.oracle.zones.iter().filter(|(_, zone)| zone.mute) {
            for name in [name.clone(), format!("_nameplate-challenge.{name}")] {
                faults.push(Fault { name, kind: None, how: How::ServFail, below: false });
            }
        }
        self.rig.zones.set_faults(faults);
    }

    /// Somebody edits a zone.
    fn edit(&mut self, name: &str, change: impl FnOnce(&mut super::oracle::Zone)) {
        let before = self.oracle.zone(name).clone();
        change(self.oracle.zone(name));
        self.publish(name, &before);
        self.oracle.look();
    }

    async fn claim(&mut self, tenant: usize, name: &'static str) -> DomainId {
        let (id, slug) = self.tenants[tenant].clone();
        let domain = self.rig.claim(&id, name).await;
        if !self.oracle.claims.contains_key(&domain) {
            let (value, target) = (self.rig.value(&domain).await, format!("{slug}.app.example"));
            let number = self.numbers.iter().position(|t| *t == id).unwrap();
            self.oracle.claimed(&domain, number, name, &value, &target, name != APEX);
            self.claims.push((domain.clone(), name, tenant));
            self.said(format!("{slug} claims {name}"));
        } else if self.rig.value(&domain).await != self.oracle.claims[&domain].value {
            // An expired claim was opened again, with a new value.
            let value = self.rig.value(&domain).await;
            self.oracle.reopened(&domain, &value);
        }
        domain
    }

    async fn act(&mut self) {
        let (tenant, name) = (self.draw(3), NAMES[self.draw(3)]);
        match self.draw(38) {
            0..2 => drop(self.claim(tenant, name).await),
            2..10 => self.hand_to(tenant, name).await,
            10..12 => self.toggle_value(name).await,
            12..14 => self.lead(tenant, name),
            14..17 => {
                self.edit(name, |zone| zone.mute = !zone.mute);
                self.said(format!("{name} mute: {}", self.oracle.zones[name].mute));
            }
            17..19 => self.remove(name).await,
            19..23 => self.undo().await,
            23 => {
                self.edit(name, |zone| *zone = super::oracle::Zone::default());
                self.said(format!("{name} lapses"));
            }
            24 => self.leave(tenant).await,
            25..28 => self.force().await,
            28 => {
                let boundary = 1 + self.draw(20);
                self.rig.scissors.set(boundary);
                self.said(format!("a worker dies at boundary {boundary}"));
            }
            29 => self.outage(),
            30..32 => self.back_up().await,
            32..34 => self.restore().await,
            34..37 => self.end_recovery().await,
            _ => {
                if let Some((id, ..)) = self.claims.get(self.draw(self.claims.len().max(1))).cloned() {
                    let _ = app::check::check_now(&self.rig.app, &id, "tenant").await;
                }
            }
        }
    }

    /// Our own way to all zones is cut, or there again.
    fn outage(&mut self) {
        self.outage = !self.outage;
        for name in NAMES {
            let mute = self.outage;
            self.edit(name, |zone| zone.mute = mute);
        }
        self.said(format!("outage: {}", self.outage));
    }

    async fn back_up(&mut self) {
        let file = self.dir.path().join(format!("{}.copy", self.turns));
        let _ = std::fs::remove_file(&file);
        assert!(self.rig.app.store.copy_to(&file).await.unwrap());
        self.copy = Some(Copy { file, tenants: self.numbers.len() });
        self.said("a copy is made".to_owned());
    }

    /// The database of a while ago is put back: twice, as somebody may who is not sure.
    async fn restore(&mut self) {
        // Of tenants that came or left since only people know.
        let Some(copy) = self.copy.take().filter(|copy| copy.tenants == self.numbers.len()) else { return };
        self.catch_up().await.unwrap();
        self.rig.app.store.close().await;
        let file = self.dir.path().join(format!("{}.db", self.turns + 1));
        std::fs::copy(&copy.file, &file).unwrap();
        let url = format!("sqlite:{}", file.display());
        self.rig.app.store = Store::open(&OpenSettings { url, connections: 4 }).await.unwrap();
        self.rig.queue.clear();
        for _ in 0..2 {
            self.rig.hand.advance(Duration::from_secs(1));
            app::restore::begin(&self.rig.app.store, &self.rig.env).await.unwrap();
        }
        self.rig.distribute_a_key().await;
        self.restores += 1;
        self.said("the copy is put back".to_owned());
        // The edge reminds the database of what it was told, and that is settled before anything else is done.
        self.catch_up().await.unwrap();
        while app::restore::settle(&self.rig.app).await.unwrap() > 0 {}
        let newer = sql("SELECT hostname FROM recollections WHERE outcome = 'newer'");
        let rows = self.rig.app.store.query(newer).await.unwrap();
        let is_newer = |name: &&str| rows.iter().any(|row| row.text("hostname").unwrap() == **name);
        self.remembered = Some(NAMES.into_iter().filter(is_newer).map(|name| (name, self.orders_of(name))).collect());
        self.forget_what_is_lost().await;
    }

    /// How many orders the CA took for a name.
    fn orders_of(&self, name: &str) -> usize {
        self.rig.ca.counted().iter().filter(|(what, of, _)| *what == Counted::Order && of.as_str() == name).count()
    }

    /// What was done after the copy is not known any more, but for what edges saw of it.
    async fn forget_what_is_lost(&mut self) {
        let stmt = sql("SELECT d.id, d.claim, a.value FROM domains d JOIN attempts a ON a.id = d.attempt_id");
        let rows = self.rig.app.store.query(stmt).await.unwrap();
        let mut known = Vec::new();
        for row in rows {
            let (id, claim): (DomainId, Claim) = (row.parse("id").unwrap(), row.parse("claim").unwrap());
            self.oracle.restored(&id, claim.is_open(), &row.text("value").unwrap());
            known.push(id);
        }
        self.claims.retain(|(id, ..)| known.contains(id));
        self.oracle.starts_anew();
    }

    async fn end_recovery(&mut self) {
        if self.remembered.take().is_some() {
            self.rig.hand.advance(Duration::from_secs(1));
            app::restore::end(&self.rig.app.store, &self.rig.env, None, "operator").await.unwrap();
            self.rig.distribute_a_key().await;
            self.said("the recovery is over".to_owned());
            self.catch_up().await.unwrap();
        }
    }

    async fn hand_to(&mut self, tenant: usize, name: &'static str) {
        let domain = self.claim(tenant, name).await;
        let (value, slug) = (self.rig.value(&domain).await, self.tenants[tenant].1.clone());
        let keeps = self.draw(4) == 0;
        self.edit(name, |zone| {
            zone.mute = false;
            if !keeps {
                zone.values.clear();
            }
            zone.values.insert(value);
            zone.way = Some(format!("{slug}.app.example"));
        });
        self.said(format!("{name} is handed to {slug}"));
    }

    async fn toggle_value(&mut self, name: &str) {
        let of: Vec<DomainId> = self.claims.iter().filter(|(_, n, _)| *n == name).map(|(id, ..)| id.clone()).collect();
        if of.is_empty() {
            return;
        }
        let value = self.oracle.claims[&of[self.draw(of.len())]].value.clone();
        self.edit(name, |zone| {
            if !zone.values.remove(&value) {
                zone.values.insert(value.clone());
            }
        });
        self.said(format!("{name}: value {value} toggled"));
    }

    fn lead(&mut self, tenant: usize, name: &str) {
        let way = match self.draw(3) {
            0 => None,
            1 => Some("elsewhere.test".to_owned()),
            _ => Some(format!("{}.app.example", self.tenants[tenant].1)),
        };
        self.said(format!("{name} leads to {way:?}"));
        self.edit(name, |zone| zone.way = way);
    }

    /// One of the name's claims that stand so; of any name where none is said.
    async fn any_of(&self, name: &str, states: &[Claim]) -> Option<DomainId> {
        let rows = sql("SELECT id, claim FROM domains WHERE hostname = $1 OR $1 = '' ORDER BY id").bind(name);
        let rows = self.rig.app.store.query(rows).await.unwrap();
        let fits = |row: &&store::Row| states.contains(&row.parse("claim").unwrap());
        let of: Vec<DomainId> = rows.iter().filter(fits).map(|row| row.parse("id").unwrap()).collect();
        if of.is_empty() { None } else { Some(of[self.draw(of.len())].clone()) }
    }

    async fn remove(&mut self, name: &str) {
        let Some(id) = self.any_of(name, &[Claim::AwaitingDns, Claim::Queued, Claim::Live]).await else { return };
        if app::remove::remove(&self.rig.app, &id, "tenant").await.is_ok() {
            self.oracle.removed(&id);
            self.said(format!("{name} removed: {id}"));
        }
    }

    async fn undo(&mut self) {
        let Some(id) = self.any_of("", &[Claim::Releasing]).await else { return };
        if app::undo::undo(&self.rig.app, &id, &Expect::ANY, "tenant").await.is_ok() {
            self.oracle.returned(&id);
            self.said(format!("brought back: {id}"));
        }
    }

    async fn force(&mut self) {
        // The last claim on each name: of older ones nothing is left to be ended.
        let rests = sql("SELECT domain_id FROM holdings WHERE state = 'quarantined' ORDER BY hostname");
        let rests = self.rig.app.store.query(rests).await.unwrap();
        if rests.is_empty() {
            return;
        }
        let id: DomainId = rests[self.draw(rests.len())].parse("domain_id").unwrap();
        if app::undo::force_release(&self.rig.app, &id, "its new owner waits", &Expect::ANY, "operator").await.is_ok() {
            self.oracle.forced(&id);
            self.said(format!("forced: {id}"));
        }
    }

    async fn leave(&mut self, tenant: usize) {
        if self.draw(2) == 0 {
            return;
        }
        let (id, slug) = self.tenants[tenant].clone();
        app::offboard::begin(&self.rig.app.store, &self.rig.env, &id, "operator").await.unwrap();
        for (domain, _, of) in self.claims.clone() {
            if of == tenant && self.numbers[self.oracle.claims[&domain].tenant] == id {
                self.oracle.removed(&domain);
            }
        }
        self.said(format!("{slug} leaves"));
        let slug = format!("{}{}", SLUGS[tenant], self.numbers.len());
        let id = self.rig.tenant(&slug).await;
        self.numbers.push(id.clone());
        self.tenants[tenant] = (id, slug);
    }

    /// Walks until so many turns were taken.
    pub async fn run(&mut self, turns: usize) -> Result<(), String> {
        while self.turns < turns {
            for _ in 0..=self.draw(4) {
                self.act().await;
            }
            self.judge().await.map_err(|why| format!("{why}\n{:#?}", self.story))?;
            let end = self.rig.env.now() + [HOUR / 60, HOUR, 8 * HOUR, 40 * HOUR][self.draw(4)];
            // What is looked at every minute must not be all that happens.
            let most = self.turns + [3, 8, 20, 60][self.draw(4)];
            while self.rig.env.now() < end && self.turns < most {
                self.rig.turn().await;
                app::routine::batch(&self.rig.app).await.unwrap();
                app::resting::round(&self.rig.app).await.unwrap();
                self.turns += 1;
                self.oracle.until(self.rig.env.now());
                self.judge().await.map_err(|why| format!("{why}\n{:#?}", self.story))?;
                if self.draw(12) == 0 {
                    self.catch_up().await.map_err(|why| format!("{why}\n{:#?}", self.story))?;
                }
            }
            self.rig.check_invariants().await;
        }
        Ok(())
    }

    async fn judge(&mut self) -> Result<(), String> {
        let stmt = sql(
            "SELECT d.id, d.claim, CAST(CASE WHEN h.domain_id = d.id AND h.state = 'held' THEN 1 ELSE 0 END AS BIGINT) AS holds, \
               CAST(CASE WHEN r.domain_id = d.id AND r.action = 'serve' AND t.status <> 'deleted' THEN 1 ELSE 0 END AS BIGINT) AS routed \
             FROM domains d JOIN tenants t ON t.id = d.tenant_id LEFT JOIN holdings h ON h.hostname = d.hostname \
             LEFT JOIN routes r ON r.hostname = d.hostname ORDER BY d.id",
        );
        let rows = self.rig.app.store.query(stmt).await.unwrap();
        let stands: Vec<Stands> = rows
            .iter()
            .map(|row| Stands {
                id: row.parse("id").unwrap(),
                claim: row.parse("claim").unwrap(),
                holds: row.int("holds").unwrap() == 1,
                routed: row.int("routed").unwrap() == 1,
            })
            .collect();
        // What edges serve is not ordered a second time while the system recovers.
        for (name, before) in self.remembered.iter().flatten() {
            if self.orders_of(name) > *before {
                return Err(format!("{name} is served by edges and was ordered again"));
            }
        }
        self.oracle.judge(&stands)
    }

    /// The late edge takes what it missed. Then it serves exactly what is routed, and nothing that it was told was older than
    /// what it had.
    async fn catch_up(&mut self) -> Result<(), String> {
        self.rig.edge_follows().await;
        let recovering = self.late.follow(&self.rig).await?;
        for name in NAMES {
            let Some(host) = self.late.served(name) else { continue };
            let number = self.numbers.iter().position(|t| *t == host.tenant);
            let of = |c: &super::oracle::Claimed| c.name == name && Some(c.tenant) == number && c.proven && !c.removed;
            if !self.oracle.claims.values().any(of) {
                return Err(format!("the late edge serves {name} for {}, whose it is not", host.slug));
            }
        }
        if recovering {
            return Ok(());
        }
        let routed = sql("SELECT r.hostname, r.tenant_id FROM routes r JOIN tenants t ON t.id = r.tenant_id \
             WHERE r.action = 'serve' AND t.status <> 'deleted' AND r.domain_id IS NOT NULL");
        let rows = self.rig.app.store.query(routed).await.unwrap();
        for name in NAMES {
            let meant = rows.iter().find(|r| r.text("hostname").unwrap() == name).map(|r| r.text("tenant_id").unwrap());
            let served = self.late.served(name).map(|h| h.tenant.to_string());
            if meant != served {
                return Err(format!("the late edge serves {name} for {served:?} instead of {meant:?}"));
            }
        }
        self.caught_up += 1;
        Ok(())
    }
}
