//! The oracle: what must always hold, judged by the truth and by what store and edges have.
//!
//! It shares no code with what it judges: it reads rows and the edges' books, and asks [`Names`] who proved what, who gave up
//! what and what the zone says. Each rule is a function of what was seen, so that each can be shown to fail.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use super::edges::Fleet;
use super::expected::A_LOOK;
use super::names::{Claimed, Name, Names, Trouble};
use crate::app::App;
use crate::model::id::DomainId;
use crate::model::moment::Moment;
use crate::sandbox::ca::DirectCa;
use crate::store::{Row, StoreResult, sql};

const DAY: Duration = Duration::from_secs(86_400);
/// A tie must have been seen lost for so long before a name is let go of; a little less, since looks are not to the second.
const GRACE: Duration = Duration::from_secs(7 * 86_400 - 3600);
/// A name goes to another claim after 72 hours; as above.
pub(super) const NOTICE: Duration = Duration::from_secs(71 * 3600);
/// So many findings are kept in words.
const SAID: usize = 50;

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Rule {
    /// No claim without its own proof holds a name, is served, or gets a certificate.
    Proof,
    /// One name has one holder, and only what is held is live.
    Holder,
    /// A route leads to the holder, and to nobody who let go of the name.
    Route,
    /// Nobody loses a name without a cause, and silence is none.
    Silence,
    /// A released name starts from zero.
    Zero,
    /// A name becomes free only when it does not lead to us.
    Dangling,
    /// At most one order is open for a name and purpose.
    Orders,
    /// A live name has a certificate whose key is there.
    Certificate,
    /// Nothing is renewed without a tie.
    Renewal,
    /// What was acknowledged is there.
    Acknowledged,
    /// The CA's limits are kept, and nothing is ordered twice.
    Limits,
    /// A name with which all is well is served.
    Served,
}

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) rule: Rule,
    pub(super) of: String,
    pub(super) said: String,
}

/// A claim, as the store has it with everything that is judged.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) id: String,
    pub(super) hostname: String,
    pub(super) tenant: String,
    pub(super) claim: String,
    pub(super) tie: String,
    pub(super) certificate: Option<String>,
    pub(super) has_key: bool,
    pub(super) holder: Option<String>,
    pub(super) holding: Option<String>,
    pub(super) route_domain: Option<String>,
    pub(super) route_tenant: Option<String>,
    pub(super) route_action: Option<String>,
    pub(super) open_orders: i64,
    pub(super) keys: i64,
}

impl Seen {
    fn of(row: &Row) -> StoreResult<Seen> {
        Ok(Seen {
            id: row.text("id")?,
            hostname: row.text("hostname")?,
            tenant: row.text("tenant_id")?,
            claim: row.text("claim")?,
            tie: row.text("tie")?,
            certificate: row.opt_text("certificate_id")?,
            has_key: row.int("has_key")? != 0,
            holder: row.opt_text("holder")?,
            holding: row.opt_text("holding")?,
            route_domain: row.opt_text("route_domain")?,
            route_tenant: row.opt_text("route_tenant")?,
            route_action: row.opt_text("route_action")?,
            open_orders: row.int("open_orders")?,
            keys: row.int("keys")?,
        })
    }

    fn is(&self, any: &[&str]) -> bool {
        any.contains(&self.claim.as_str())
    }
}

/// What the oracle found so far.
#[derive(Default)]
pub(super) struct Oracle {
    known: HashSet<(Rule, String)>,
    pub(super) violations: u64,
    pub(super) takeovers: u64,
    pub(super) released_dangling: u64,
    pub(super) expired_healthy: u64,
    pub(super) expired: u64,
    pub(super) checks: u64,
    said: Vec<String>,
}

/// When the platform was last in order: what depends on it is judged from then on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    pub(super) ca_back_at: Option<Moment>,
    pub(super) now: Moment,
}

impl Oracle {
    pub(super) fn said(&self) -> &[String] {
        &self.said
    }

    /// Takes what was found; the same again is no second finding.
    pub(super) fn take(&mut self, found: Vec<Broken>, now: Moment) {
        for broken in found {
            if !self.known.insert((broken.rule, broken.of.clone())) {
                continue;
            }
            match broken.rule {
                Rule::Proof => self.takeovers += 1,
                Rule::Dangling => self.released_dangling += 1,
                _ => {}
            }
            self.violations += 1;
            self.say(format!("{}: {:?}: {}", now.rfc3339(), broken.rule, broken.said));
        }
    }

    pub(super) fn say(&mut self, said: String) {
        tracing::warn!(said, "the simulation found something");
        if self.said.len() < SAID {
            self.said.push(said);
        }
    }

    /// Looks at everything that a step on this claim may have touched.
    pub(super) async fn touched(&mut self, app: &App, names: &Names, id: &DomainId) -> StoreResult<()> {
        let stmt = sql("SELECT d.id, d.hostname, d.tenant_id, d.claim, d.tie, d.certificate_id, \
               CAST(CASE WHEN c.sealed_key IS NOT NULL AND c.destroyed_at IS NULL THEN 1 ELSE 0 END AS BIGINT) AS has_key, \
               h.domain_id AS holder, h.state AS holding, \
               r.domain_id AS route_domain, r.tenant_id AS route_tenant, r.action AS route_action, \
               (SELECT count(*) FROM orders o WHERE o.domain_id = d.id AND o.state NOT IN ('issued', 'failed', 'lost')) AS open_orders, \
               CASE WHEN d.claim = 'released' THEN (SELECT count(*) FROM certificates k WHERE k.domain_id = d.id \
                 AND k.sealed_key IS NOT NULL) ELSE 0 END AS keys \
             FROM domains x JOIN domains d ON d.hostname = x.hostname \
             LEFT JOIN certificates c ON c.id = d.certificate_id \
             LEFT JOIN holdings h ON h.hostname = d.hostname LEFT JOIN routes r ON r.hostname = d.hostname \
             WHERE x.id = $1")
        .bind(id.as_str());
        let seen: Vec<Seen> = app.store.query(stmt).await?.iter().map(Seen::of).collect::<StoreResult<_>>()?;
        self.checks += 1;
        if let Some(name) = seen.first().and_then(|one| names.get(&one.hostname)) {
            self.take(judge(name, &seen, names, app.env.now()), app.env.now());
        }
        Ok(())
    }

    /// Looks at everything.
    pub(super) async fn everything(&mut self, app: &App, names: &Names, fleet: &Fleet, since: Since) -> StoreResult<()> {
        let stmt = sql("SELECT d.id, d.hostname, d.tenant_id, d.claim, d.tie, d.certificate_id, \
               CAST(CASE WHEN c.sealed_key IS NOT NULL AND c.destroyed_at IS NULL THEN 1 ELSE 0 END AS BIGINT) AS has_key, \
               h.domain_id AS holder, h.state AS holding, \
               r.domain_id AS route_domain, r.tenant_id AS route_tenant, r.action AS route_action, \
               (SELECT count(*) FROM orders o WHERE o.domain_id = d.id AND o.state NOT IN ('issued', 'failed', 'lost')) AS open_orders, \
               CASE WHEN d.claim = 'released' THEN (SELECT count(*) FROM certificates k WHERE k.domain_id = d.id \
                 AND k.sealed_key IS NOT NULL) ELSE 0 END AS keys \
             FROM domains d LEFT JOIN certificates c ON c.id = d.certificate_id \
             LEFT JOIN holdings h ON h.hostname = d.hostname LEFT JOIN routes r ON r.hostname = d.hostname \
             ORDER BY d.hostname");
        let seen: Vec<Seen> = app.store.query(stmt).await?.iter().map(Seen::of).collect::<StoreResult<_>>()?;
        let mut there = HashSet::new();
        for of_name in seen.chunk_by(|a, b| a.hostname == b.hostname) {
            self.checks += 1;
            if let Some(name) = names.get(&of_name[0].hostname) {
                there.extend(of_name.iter().map(|one| one.id.as_str()));
                self.take(judge(name, of_name, names, since.now), since.now);
            }
        }
        for name in names.all() {
            let lost = name.claims.iter().filter(|claim| !there.contains(claim.id.as_str()));
            let said = |claim: &Claimed| format!("claim {} of {} was acknowledged and is not there", claim.id, name.host);
            let lost = lost.map(|claim| Broken { rule: Rule::Acknowledged, of: claim.id.to_string(), said: said(claim) });
            self.take(lost.collect(), since.now);
            self.take(at_edges(name, fleet), since.now);
            self.serving(name, fleet, since);
        }
        Ok(())
    }

    /// Holds what the CA made against what the store knows of: nothing is ordered twice, and nothing twice issued. An order that is
    /// being placed is known by its intent.
    pub(super) async fn at_the_ca(&mut self, app: &App, ca: &DirectCa) -> StoreResult<()> {
        let stmt = sql("SELECT d.hostname, (SELECT count(*) FROM certificates c WHERE c.domain_id = d.id) AS stored, \
               (SELECT count(*) FROM orders o WHERE o.domain_id = d.id AND o.url IS NOT NULL AND o.state <> 'issued') AS others, \
               (SELECT count(*) FROM orders o WHERE o.domain_id = d.id AND (o.url IS NOT NULL OR o.state IN ('lost', 'failed') \
                 OR EXISTS (SELECT 1 FROM intents n WHERE n.subject_kind = 'domain' AND n.subject_id = d.id \
                   AND n.object_id = o.id AND n.effect = 'new_order'))) AS placed \
             FROM domains d");
        let mut known: HashMap<String, (u64, u64)> = HashMap::new();
        for row in app.store.query(stmt).await? {
            let of = known.entry(row.text("hostname")?).or_default();
            let count = |column| row.int(column).map(|n| u64::try_from(n).unwrap_or(0));
            of.0 += count("stored")? + count("others")?;
            of.1 += count("placed")?;
        }
        let counters = ca.state().counters().clone();
        let more = |made: &BTreeMap<String, u64>, what: &str, of: fn(&(u64, u64)) -> u64| -> Vec<Broken> {
            let few = |host: &str| known.get(host).map_or(0, of);
            let too_many = made.iter().filter(|(host, n)| **n > few(host));
            let said = |host: &str, n| format!("the CA made {n} {what} for {host}, and {} are known", few(host));
            let broken = |(host, n): (&String, &u64)| Broken {
                rule: Rule::Limits,
                of: format!("{host} {what}"),
                said: said(host, *n),
            };
            too_many.map(broken).collect()
        };
        self.take(more(&counters.certificates_by_name, "certificates", |(issued, _)| *issued), app.env.now());
        self.take(more(&counters.orders_by_name, "orders", |(_, placed)| *placed), app.env.now());
        if counters.limits_passed > 0 {
            let said = format!("{} calls were refused for a limit", counters.limits_passed);
            self.take(vec![Broken { rule: Rule::Limits, of: "429".to_owned(), said }], app.env.now());
        }
        Ok(())
    }

    /// Whether a name is served as it should be by now.
    pub(super) fn serving(&mut self, name: &Name, fleet: &Fleet, since: Since) {
        let (Some(claim), now) = (name.wanted(), since.now) else { return };
        let edges = fleet.edges();
        for entry in edges.iter().filter(|edge| edge.follows()).map(|edge| edge.serves(name.host.as_str())) {
            let expired = entry.is_some_and(|entry| entry.not_after <= now);
            if expired && self.known.insert((Rule::Served, format!("{} expired", name.host))) {
                self.expired += 1;
            }
            if !is_to_be_served(name, since) {
                continue;
            }
            let of = name.host.to_string();
            match entry {
                Some(entry) if expired => {
                    if self.known.insert((Rule::Served, of)) {
                        self.expired_healthy += 1;
                        let ended = entry.not_after.rfc3339();
                        self.say(format!("{}: {} is well, and its certificate ended at {ended}", now.rfc3339(), name.host));
                    }
                }
                Some(entry) if entry.tenant == claim.tenant => {}
                _ => {
                    let said = format!("{} is well, and an edge does not serve it for its tenant", name.host);
                    self.take(vec![Broken { rule: Rule::Served, of, said }], now);
                }
            }
        }
    }
}

/// Whether all has been well for so long that nothing excuses a name that is not served.
fn is_to_be_served(name: &Name, since: Since) -> bool {
    // Whoever follows another claim waits 72 hours for it.
    let follows = name.claims.len() > 1 && name.wanted.is_some_and(|at| at > 0);
    let patience = if follows { A_LOOK + 3 * DAY } else { A_LOOK };
    let well = name.well_since.is_some_and(|well| since.now.since(well) >= patience);
    well && since.ca_back_at.is_some_and(|back| since.now.since(back) >= A_LOOK)
}

/// What the edges have of a name, against who may be served.
pub(super) fn at_edges(name: &Name, fleet: &Fleet) -> Vec<Broken> {
    let mut found = Vec::new();
    for entry in fleet.edges().iter().filter(|edge| edge.follows()).filter_map(|edge| edge.serves(name.host.as_str())) {
        let of_tenant = || name.claims.iter().filter(|claim| claim.tenant == entry.tenant);
        let said = |what: &str| format!("an edge serves {} for {}, {what}", name.host, entry.tenant);
        let of = format!("{} {}", name.host, entry.tenant);
        if !of_tenant().any(|claim| claim.published_at.is_some()) {
            found.push(Broken { rule: Rule::Proof, of, said: said("who never proved it") });
        } else if of_tenant().all(|claim| claim.given_up_at.is_some()) {
            found.push(Broken { rule: Rule::Route, of, said: said("who let go of it") });
        }
    }
    found
}

/// The rows of one name against the truth about it.
pub(super) fn judge(name: &Name, seen: &[Seen], names: &Names, now: Moment) -> Vec<Broken> {
    let mut found = Vec::new();
    let mut broken = |rule, of: &str, said: String| found.push(Broken { rule, of: of.to_owned(), said });
    let live = seen.iter().filter(|one| one.claim == "live").count();
    if live > 1 {
        broken(Rule::Holder, name.host.as_str(), format!("{} has {live} live claims", name.host));
    }
    for one in seen {
        let Some(truth) = name.claims.iter().find(|claim| claim.id.as_str() == one.id) else {
            broken(Rule::Acknowledged, &one.id, format!("nobody made claim {} of {}", one.id, name.host));
            continue;
        };
        if one.is(&["queued", "live"]) && truth.published_at.is_none() {
            broken(Rule::Proof, &one.id, format!("{} is {} for {}, who never proved it", name.host, one.claim, one.tenant));
        }
        if one.claim == "live" && (one.holder.as_ref() != Some(&one.id) || one.holding.as_deref() != Some("held")) {
            let (holding, holder) = (&one.holding, &one.holder);
            broken(Rule::Holder, &one.id, format!("{} is live and {holding:?} by {holder:?}", name.host));
        }
        if one.claim == "live" && !(one.certificate.is_some() && one.has_key) {
            broken(Rule::Certificate, &one.id, format!("{} is live without a certificate or its key", name.host));
        }
        if one.is(&["releasing", "released"]) && !has_cause(truth, now) {
            broken(Rule::Silence, &one.id, format!("{} is {} and nobody let go of it", name.host, one.claim));
        }
        if one.is(&["withdrawn"]) && truth.given_up_at.is_none() {
            broken(Rule::Acknowledged, &one.id, format!("the claim of {} was withdrawn by nobody", name.host));
        }
        if one.tie == "lost" && one.claim == "live" && !was_gone(name, truth, now) {
            broken(Rule::Silence, &one.id, format!("{} counts as lost and its records were never gone", name.host));
        }
        if one.claim == "released" && (one.certificate.is_some() || one.keys > 0) {
            broken(Rule::Zero, &one.id, format!("{} is released and has a certificate or {} keys", name.host, one.keys));
        }
        if one.open_orders > 1 {
            broken(Rule::Orders, &one.id, format!("{} has {} open orders", name.host, one.open_orders));
        }
    }
    let Some(first) = seen.first() else { return found };
    if first.route_action.as_deref() == Some("serve") {
        let to = first.route_domain.clone().unwrap_or_default();
        let one = seen.iter().find(|one| one.id == to);
        if one.is_none_or(|one| one.claim != "live" || Some(&one.tenant) != first.route_tenant.as_ref()) {
            let said = format!("the route of {} leads to {to} of {:?}, which is not live", name.host, first.route_tenant);
            found.push(Broken { rule: Rule::Route, of: name.host.to_string(), said });
        }
        let tenant = first.route_tenant.clone().unwrap_or_default();
        let proved = name.claims.iter().any(|claim| claim.tenant.as_str() == tenant && claim.published_at.is_some());
        if !proved {
            let said = format!("the route of {} leads to {tenant}, who never proved it", name.host);
            found.push(Broken { rule: Rule::Proof, of: format!("{} {tenant}", name.host), said });
        }
    }
    if first.holding.as_deref() == Some("free") && names.leads_to_us(&name.host) {
        let said = format!("{} is free for anybody and its zone still leads to us", name.host);
        found.push(Broken { rule: Rule::Dangling, of: name.host.to_string(), said });
    }
    found
}

/// Whether a claim that was let go of had to be: its tenant wanted it, its tie was gone for the whole grace, or it went to another.
pub(super) fn has_cause(claim: &Claimed, now: Moment) -> bool {
    let gone = claim.gone_for + claim.gone_since.map_or(Duration::ZERO, |since| now.since(since));
    let followed = claim.followed_for + claim.followed_since.map_or(Duration::ZERO, |since| now.since(since));
    claim.given_up_at.is_some() || gone >= GRACE || followed >= NOTICE
}

/// Whether what ties a name to a claim was gone the last time that anybody could see it.
fn was_gone(name: &Name, claim: &Claimed, now: Moment) -> bool {
    let lately = |at: Moment| match (name.well_since, name.trouble) {
        (Some(well), _) => now.since(well.max(at)) <= A_LOOK,
        // Nobody can see since then whether it is back.
        (None, Some((Trouble::Bogus | Trouble::Silent, began))) => began.since(at) <= A_LOOK,
        (None, _) => now.since(at) <= A_LOOK,
    };
    claim.gone_since.is_some() || claim.last_gone.is_some_and(lately)
}

/// Whether the CA issued for a name that nothing tied to anybody, for longer than a look can be old.
pub(super) fn issued_without_a_tie(name: &Name, now: Moment) -> Option<Broken> {
    let tied = |claim: &Claimed| claim.gone_since.is_none_or(|since| now.since(since) < Duration::from_secs(3600));
    if name.claims.iter().any(tied) {
        return None;
    }
    let said = format!("a certificate was issued for {}, which nothing tied to anybody", name.host);
    Some(Broken { rule: Rule::Renewal, of: name.host.to_string(), said })
}

#[cfg(test)]
mod tests;
