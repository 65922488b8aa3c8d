//! Two tenants whose claims meet on one name, of which the first is live.

use std::time::Duration;

use nameplate::model::id::{DomainId, TenantId};
use nameplate::store::sql;

use super::rig::Rig;

pub const HOUR: Duration = Duration::from_secs(3600);

/// Two tenants and their claims on one name; the first one is live.
pub struct Met {
    pub rig: Rig,
    pub name: &'static str,
    pub tenants: [TenantId; 2],
    pub holder: DomainId,
    pub next: DomainId,
}

impl Met {
    pub async fn new(seed: u64, name: &'static str) -> Met {
        Met::on(Rig::new(seed).await, name).await
    }

    pub async fn on(rig: Rig, name: &'static str) -> Met {
        let tenants = [rig.tenant("acme").await, rig.tenant("beta").await];
        let holder = rig.claim(&tenants[0], name).await;
        let met = Met { next: rig.claim(&tenants[1], name).await, rig, name, tenants, holder };
        met.txt(&met.holder, true).await;
        met.way(&met.holder, true).await;
        met.rig.until_active(&met.holder, HOUR).await;
        met
    }

    pub async fn txt(&self, id: &DomainId, there: bool) {
        let line = format!("_nameplate-challenge.{}. 60 IN TXT \"{}\"", self.name, self.rig.value(id).await);
        if there {
            self.rig.zones.add(&line).unwrap();
        } else {
            self.rig.zones.remove(&line).unwrap();
        }
    }

    /// The way to us: a CNAME to the claim's target, at an apex our address.
    pub async fn way(&self, id: &DomainId, there: bool) {
        let target = self.rig.domain_text(id, "target").await.unwrap();
        let line = match self.name {
            "acme.test" => "acme.test. 60 IN A 192.0.2.80".to_owned(),
            name => format!("{name}. 60 IN CNAME {target}."),
        };
        if there {
            self.rig.zones.add(&line).unwrap();
        } else {
            self.rig.zones.remove(&line).unwrap();
        }
    }

    /// The zone's owner hands the name to the other tenant.
    pub async fn swap(&self) {
        self.txt(&self.holder, false).await;
        self.txt(&self.next, true).await;
        self.way(&self.holder, false).await;
        self.way(&self.next, true).await;
    }

    /// The clock as it stands after 71 hours, without living through them.
    pub async fn nearly_over(&self) {
        self.rig.pass(Duration::from_secs(1200)).await;
        let counted = i64::try_from((71 * HOUR).as_micros()).unwrap();
        let stmt = sql("UPDATE holdings SET successor_counted = $1 WHERE successor_id = $2");
        assert_eq!(self.rig.app.store.execute(stmt.bind(counted).bind(self.next.as_str())).await.unwrap(), 1);
    }

    pub async fn state(&self, id: &DomainId) -> String {
        self.rig.domain_text(id, "claim").await.unwrap()
    }

    pub async fn told(&self, id: &DomainId, kind: &str) -> usize {
        self.rig.events(id).await.iter().filter(|k| *k == kind).count()
    }

    /// Nothing that a tenant can see names the other one.
    pub async fn nobody_is_named(&self) {
        for (id, other) in [(&self.holder, 1), (&self.next, 0)] {
            let stmt =
                sql("SELECT e.cause, e.detail, e.actor, d.evidence FROM events e JOIN domains d ON d.id = e.domain_id \
                 WHERE d.id = $1");
            for row in self.rig.app.store.query(stmt.bind(id.as_str())).await.unwrap() {
                let said: String =
                    ["cause", "detail", "actor", "evidence"].iter().map(|c| row.text(c).unwrap().to_lowercase()).collect();
                // The host of the other tenant may stand in DNS, which anybody can read.
                let said = said.replace("acme.test", "").replace("acme.app.example", "").replace("beta.app.example", "");
                assert!(!said.contains(self.tenants[other].as_str()), "{said}");
                assert!(!said.contains(["acme", "beta"][other]), "{said}");
                let others = if other == 1 { &self.next } else { &self.holder };
                assert!(!said.contains(others.as_str()), "{said}");
            }
        }
    }

    pub async fn held_by(&self, id: &DomainId, term: i64) {
        let stmt = sql("SELECT term AS n FROM holdings WHERE hostname = $1 AND domain_id = $2 AND state = 'held'");
        assert_eq!(self.rig.count(stmt.bind(self.name).bind(id.as_str())).await, term);
    }
}
