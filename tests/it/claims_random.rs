//! Random lives of one name that three tenants want: whatever they, their zone and time do, a name moves by the rules only.

use std::time::Duration;

use nameplate::app;
use nameplate::dns::world::{Fault, How};
use nameplate::model::id::{DomainId, TenantId};
use nameplate::model::moment::Moment;
use nameplate::store::sql;

use crate::support::rig::{Rig, START};

const NAME: &str = "shop.acme.test";
const LABEL: &str = "_nameplate-challenge.shop.acme.test";
const HOUR: Duration = Duration::from_secs(3600);
/// Looks of a claim that is next are not further apart.
const LOOKS: Duration = Duration::from_secs(5 * 3600);
const NOTICE: Duration = Duration::from_secs(72 * 3600);

/// What the zone says, as the test itself put it there.
struct Life {
    rig: Rig,
    tenants: Vec<TenantId>,
    /// Each tenant's latest claim, and the line of its ownership record while that is published.
    claims: Vec<(DomainId, Option<String>)>,
    way: Option<String>,
    broken: bool,
    /// For how long the holder's record has been gone from a zone that answers, with another's there, and for how long it has
    /// been back.
    gone: Duration,
    back: Duration,
    watched_at: Moment,
    holder: Option<DomainId>,
    removed: Vec<DomainId>,
}

impl Life {
    async fn new(seed: u64) -> Life {
        let rig = Rig::new(seed).await;
        let mut life = Life {
            rig,
            tenants: Vec::new(),
            claims: Vec::new(),
            way: None,
            broken: false,
            gone: Duration::ZERO,
            back: Duration::ZERO,
            watched_at: START,
            holder: None,
            removed: Vec::new(),
        };
        for slug in ["acme", "beta", "gamma"] {
            let tenant = life.rig.tenant(slug).await;
            life.claims.push((life.rig.claim(&tenant, NAME).await, None));
            life.tenants.push(tenant);
        }
        life
    }

    fn draw(&self, below: u64) -> usize {
        usize::try_from(self.rig.hand.below(below)).unwrap()
    }

    async fn toggle_record(&mut self, of: usize) {
        match self.claims[of].1.take() {
            Some(line) => self.rig.zones.remove(&line).unwrap(),
            None => {
                let line = format!("{LABEL}. 60 IN TXT \"{}\"", self.rig.value(&self.claims[of].0).await);
                self.rig.zones.add(&line).unwrap();
                self.claims[of].1 = Some(line);
            }
        }
    }

    async fn lead_to(&mut self, of: usize) {
        if let Some(line) = self.way.take() {
            self.rig.zones.remove(&line).unwrap();
        }
        let target = self.rig.domain_text(&self.claims[of].0, "target").await.unwrap();
        let line = format!("{NAME}. 60 IN CNAME {target}.");
        self.rig.zones.add(&line).unwrap();
        self.way = Some(line);
    }

    /// Lets a claim go, and claims anew.
    async fn start_again(&mut self, of: usize) {
        if let Some(line) = self.claims[of].1.take() {
            self.rig.zones.remove(&line).unwrap();
        }
        let id = self.claims[of].0.clone();
        if app::remove::remove(&self.rig.app, &id, "tenant").await.is_ok() {
            self.removed.push(id);
        }
        self.claims[of].0 = self.rig.claim(&self.tenants[of], NAME).await;
    }

    fn toggle_fault(&mut self) {
        self.broken = !self.broken;
        let how = if self.draw(2) == 0 { How::ServFail } else { How::Timeout };
        let fault = Fault { name: LABEL.to_owned(), kind: None, how, below: false };
        self.rig.zones.set_faults(if self.broken { vec![fault] } else { Vec::new() });
    }

    /// The zone's owner wants one of them to have the name.
    async fn hand_to(&mut self, of: usize) {
        if self.broken {
            self.toggle_fault();
        }
        for n in 0..3 {
            if self.claims[n].1.is_some() != (n == of) {
                self.toggle_record(n).await;
            }
        }
        self.lead_to(of).await;
    }

    async fn act(&mut self) -> String {
        let of = self.draw(3);
        match self.draw(14) {
            0..5 => {
                self.toggle_record(of).await;
                format!("record of {of}")
            }
            5..8 => {
                self.lead_to(of).await;
                format!("way to {of}")
            }
            8 => {
                self.start_again(of).await;
                format!("{of} starts again")
            }
            9 => {
                self.toggle_fault();
                format!("broken {}", self.broken)
            }
            10..13 => {
                self.hand_to(of).await;
                format!("all to {of}")
            }
            _ => {
                let _ = app::check::check_now(&self.rig.app, &self.claims[of].0, "tenant").await;
                format!("{of} asks")
            }
        }
    }

    /// Counts the time that the rules ask for, as the zone's owner would.
    fn watch(&mut self) {
        let now = self.rig.env.now();
        let past = now.since(self.watched_at);
        self.watched_at = now;
        let Some(holder) = &self.holder else {
            (self.gone, self.back) = (Duration::ZERO, Duration::ZERO);
            return;
        };
        let there = self.claims.iter().any(|(id, line)| id == holder && line.is_some());
        let others = self.claims.iter().any(|(id, line)| id != holder && line.is_some());
        if self.broken {
            return;
        }
        if others && !there {
            self.gone += past;
            self.back = Duration::ZERO;
            return;
        }
        self.back += past;
        // What comes back for less time than lies between two looks may not be seen.
        if self.back > LOOKS {
            self.gone = Duration::ZERO;
        } else {
            self.gone += past;
        }
    }

    async fn pass(&mut self, time: Duration, story: &[String]) {
        let end = self.rig.env.now() + time;
        while self.rig.env.now() < end {
            self.rig.turn().await;
            let rows = sql(
                "SELECT h.domain_id, d.claim, r.domain_id AS routed, r.action, r.term AS r_term, h.term FROM holdings h \
                 JOIN domains d ON d.id = h.domain_id LEFT JOIN routes r ON r.hostname = h.hostname WHERE h.state = 'held'",
            );
            let rows = self.rig.app.store.query(rows).await.unwrap();
            let now_held: Option<DomainId> = rows.first().map(|r| r.parse("domain_id").unwrap());
            let live = rows.first().filter(|r| r.text("claim").unwrap() == "live");
            if let (Some(was), Some(is)) = (&self.holder, &now_held)
                && was != is
                && !self.removed.contains(was)
            {
                self.watch();
                assert!(self.gone >= NOTICE, "moved after {:?}: {story:#?}", self.gone);
            }
            if let (Some(was), None) = (&self.holder, &now_held) {
                assert!(self.removed.contains(was), "a live name was let go of: {story:#?}");
            }
            if let Some(row) = live {
                assert_eq!(row.opt_text("routed").unwrap(), Some(row.text("domain_id").unwrap()), "{story:#?}");
                assert_eq!(
                    (row.text("action").unwrap(), row.int("r_term").unwrap()),
                    ("serve".into(), row.int("term").unwrap())
                );
                assert!(self.rig.serial_at_edge(NAME).is_some(), "a live name is not served: {story:#?}");
            }
            let held = live.and(now_held);
            if held != self.holder {
                self.holder = held;
                (self.gone, self.back) = (Duration::ZERO, Duration::ZERO);
            }
            self.watch();
        }
        self.rig.check_invariants().await;
    }
}

#[tokio::test]
async fn whatever_happens_a_name_moves_by_the_rules_only() {
    let (mut moves, mut hand_overs) = (0, 0);
    for seed in 0..5 {
        let mut life = Life::new(1000 + seed).await;
        let mut story = vec![format!("seed {seed}")];
        for _ in 0..24 {
            for _ in 0..1 + life.draw(2) {
                life.watch();
                let done = life.act().await;
                story.push(format!("{} {done}", life.rig.env.now()));
            }
            let time = [HOUR / 60, HOUR, 20 * HOUR, 90 * HOUR][life.draw(4)];
            life.pass(time, &story).await;
        }
        let told = sql("SELECT count(*) AS n FROM events WHERE kind = 'handed_over'");
        hand_overs += life.rig.count(told).await;
        moves += life.rig.count(sql("SELECT count(*) AS n FROM certificates")).await;
        let twice =
            sql("SELECT count(*) AS n FROM (SELECT domain_id, kind, about FROM notices GROUP BY domain_id, kind, about \
             HAVING count(*) > 1) t");
        assert_eq!(life.rig.count(twice).await, 0);
    }
    assert!(moves > 5 && hand_overs > 1, "too little happened: {moves} certificates, {hand_overs} hand-overs");
}
