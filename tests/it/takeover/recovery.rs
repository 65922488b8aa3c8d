//! What befalls the pure walk's database and its edges: copies, restores at any moment, edges that come late. The settling of what edges
//! remember is the use case's, over rows in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use nameplate::model::claim::Claim;
use nameplate::model::conclude;
use nameplate::model::domain::HoldingState;
use nameplate::model::feed::HostAction;
use nameplate::model::id::{DomainId, TenantId};
use nameplate::model::letting_go::Resting;
use nameplate::model::moment::Moment;

use super::edges::Edge;
use super::pure::{NAMES, SLUGS, Walk};
use super::rows::{Broken, Rows};

/// The database of a while ago.
#[derive(Clone)]
pub struct Copy {
    rows: Rows,
    daily: BTreeMap<usize, Moment>,
    resting: BTreeMap<String, (Resting, Moment)>,
    /// How many tenants there had been.
    tenants: usize,
}

impl Walk {
    pub(super) fn back_up(&mut self) {
        let (rows, daily, resting) = (self.rows.clone(), self.daily.clone(), self.resting.clone());
        self.copy = Some(Copy { rows, daily, resting, tenants: self.numbers.len() });
        self.said("a copy is made".to_owned());
    }

    /// The copy is put back, whatever edges know by now, and the restore is declared: twice, as somebody may who is not sure.
    pub(super) fn restore(&mut self) {
        let Some(copy) = self.copy.clone() else { return };
        let lost: BTreeMap<DomainId, bool> =
            self.rows.lines.iter().map(|l| (l.domain.id.clone(), self.serves(&l.domain.id))).collect();
        let left = self.rows.left.clone();
        self.rows.put_back(&copy.rows);
        (self.daily, self.resting) = (copy.daily, copy.resting);
        for (resting, _) in self.resting.values_mut() {
            (resting.looks_off, resting.first_off_at) = (0, None);
        }
        for _ in 0..2 {
            self.now = self.now + Duration::from_secs(1);
            self.oracle.until(self.now);
            self.rows.restored(self.now);
            self.rows.feed.begin_recovery(self.now);
        }
        self.said("the copy is put back".to_owned());
        let told = self.latest_told();
        for line in &self.rows.lines {
            let d = &line.domain;
            // Where edges were not told yet that it was brought back, that is lost.
            let last = told.get(d.hostname.as_str()).is_none_or(|(_, serves)| serves.as_ref() == Some(&d.tenant_id));
            if self.serves(&d.id) && !(last && lost.get(&d.id) == Some(&true)) {
                self.let_go_since.insert(d.id.clone());
            }
        }
        self.what_people_know(&left, copy.tenants);
        self.what_the_judge_forgets(&told);
    }

    /// What any edge was told last of each name: the version, and for whom it is served.
    fn latest_told(&self) -> BTreeMap<String, (i64, Option<TenantId>)> {
        let mut latest: BTreeMap<String, (i64, Option<TenantId>)> = BTreeMap::new();
        for (name, version, serves) in self.edges.iter().flat_map(Edge::told) {
            if latest.get(name.as_str()).is_none_or(|(known, _)| version > *known) {
                latest.insert(name.to_string(), (version, serves));
            }
        }
        latest
    }

    fn serves(&self, id: &DomainId) -> bool {
        NAMES.iter().any(|name| self.rows.feed.routed(name) == Some(id))
    }

    /// Whoever left since is removed again before anything runs; whoever signed up since does so again.
    fn what_people_know(&mut self, left: &[TenantId], known: usize) {
        for id in left {
            if self.numbers[..known].contains(id) && !self.rows.left.contains(id) {
                self.rows.leave(id, self.now);
            }
        }
        for tenant in 0..SLUGS.len() {
            let number = self.numbers.iter().position(|id| *id == self.tenants[tenant].0);
            if number.is_some_and(|n| n >= known) {
                self.signs_up(tenant);
            }
        }
    }

    /// What was done after the copy is lost, but for what edges were told of it.
    fn what_the_judge_forgets(&mut self, told: &BTreeMap<String, (i64, Option<TenantId>)>) {
        for line in &self.rows.lines {
            let d = &line.domain;
            let routed = self.rows.feed.routed(d.hostname.as_str()) == Some(&d.id);
            let edges_know = told.get(d.hostname.as_str()).is_some_and(|(version, serves)| {
                !self.rows.feed.is_newer(&d.hostname, *version) && serves.as_ref() != Some(&d.tenant_id)
            });
            let removed = self.oracle.claims[&d.id].removed && routed && edges_know;
            let left = self.rows.left.contains(&d.tenant_id);
            self.oracle.restored(&d.id, d.claim.is_open() && !removed && !left, &line.attempt.value);
        }
        self.oracle.starts_anew();
    }

    /// What edges remember is settled, one name after the other, once all told: one that came late may not know the end of the story.
    pub(super) fn settle_memories(&mut self) -> Result<(), String> {
        let Some(since) = self.rows.feed.recovering_since.filter(|_| !self.rows.feed.edges_behind) else { return Ok(()) };
        let unsettled: Vec<String> =
            self.rows.feed.memories.iter().filter(|(_, m)| m.outcome.is_none()).map(|(name, _)| name.clone()).collect();
        for name in unsettled {
            let told = self.rows.feed.memories[&name].told.clone();
            let (host, serves) = (&told.host, told.host.action == HostAction::Serve);
            let stands = |claim: Claim| matches!(claim, Claim::AwaitingDns | Claim::Queued | Claim::Live | Claim::Expired);
            let claim = self.rows.lines.iter().position(|l| {
                let d = &l.domain;
                d.tenant_id == host.tenant_id && d.hostname == host.hostname && stands(d.claim) && d.created_at < since
            });
            let holding = self.rows.holdings.get(&name).filter(|h| {
                let other = h.tenant_id.as_ref() != Some(&host.tenant_id);
                h.state == HoldingState::Held && other && h.term < host.term && h.since < since
            });
            let overtaken = holding.and_then(|h| h.domain_id.clone());
            let overtaken = self.rows.lines.iter().position(|l| Some(&l.domain.id) == overtaken.as_ref());
            let unknown = host.certificate_id.as_ref().is_some_and(|id| !self.rows.feed.has_certificate(id));
            if let Some(at) = overtaken {
                self.let_go(at, true)?;
            }
            let outcome = match claim {
                Some(at) if !serves => {
                    self.let_go(at, false)?;
                    "let_go"
                }
                None if serves => "unknown",
                None if overtaken.is_some() => "let_go",
                Some(_) if unknown => "newer",
                Some(_) | None => "known",
            };
            *self.oracle.seen.entry(outcome).or_default() += 1;
            if let Some(memory) = self.rows.feed.memories.get_mut(&name) {
                memory.outcome = Some(outcome);
            }
        }
        Ok(())
    }

    fn let_go(&mut self, at: usize, went_on: bool) -> Result<(), String> {
        let s = self.rows.situation(at);
        let concluded = match went_on {
            true => conclude::remembered_elsewhere(&s, self.now),
            false => conclude::remembered_gone(&s, self.now),
        };
        let Ok(out) = concluded else { return Ok(()) };
        let id = s.domain.id.clone();
        if s.domain.claim == Claim::Live && self.serves(&id) && !self.let_go_since.contains(&id) {
            return Err(format!(
                "what edges remember took {} from a tenant that was served when the copy was put back",
                s.domain.hostname
            ));
        }
        self.rows.record(at, &s, &out, self.now);
        if went_on {
            self.rows.feed.unroute(s.domain.hostname.as_str(), &id);
        }
        self.oracle.removed(&id);
        self.said(format!("{} is let go of again by {}", s.domain.hostname, s.tenant_slug));
        Ok(())
    }

    /// An operator ends the recovery once all edges told what they remember and that is settled.
    pub(super) fn end_recovery(&mut self) {
        let feed = &self.rows.feed;
        let settled = feed.memories.values().all(|m| m.outcome.is_some());
        if feed.recovering_since.is_some() && !feed.edges_behind && settled {
            self.now = self.now + Duration::from_secs(1);
            self.oracle.until(self.now);
            self.rows.feed.end_recovery(self.now);
            self.let_go_since.clear();
            *self.oracle.seen.entry("recovered").or_default() += 1;
            self.said("the recovery is over".to_owned());
        }
    }

    /// Edges follow when they like, each at its own pace; one starts again now and then from what is on its disk.
    pub(super) fn edges_follow(&mut self) -> Result<(), String> {
        for n in 0..self.edges.len() {
            let behind = self.edges[n].epoch() != self.rows.feed.position.epoch;
            let one_in = if behind { 3 } else { [2, 25][n] };
            if self.draw(one_in) == 0 {
                self.follows(n)?;
            }
            match self.draw(60) {
                0 => self.edges[n].writes_its_disk(),
                // What it has to tell of is on its disk as soon as it acts by it.
                1 if !behind && self.edges[n].starts_again() => {
                    *self.oracle.seen.entry("an edge started again").or_default() += 1
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn follows(&mut self, n: usize) -> Result<(), String> {
        let before = self.edges[n].all(&NAMES);
        let remembered = self.edges[n].follow(&self.rows.feed)?;
        if self.rows.broken != Broken::MemoryIgnored {
            remembered.into_iter().for_each(|told| self.rows.feed.recollect(told));
        }
        let epoch = self.rows.feed.position.epoch;
        let recovering = self.rows.feed.recovering_since.is_some();
        if recovering {
            self.rows.feed.edges_behind = self.edges.iter().any(|e| e.epoch() != epoch);
        }
        for name in NAMES {
            let (served, meant) = (self.edges[n].serves(name), self.rows.feed.meant(name));
            // While the system recovers an edge goes on as it did, but for tenants that left.
            let left = before.get(name).is_some_and(|s| self.rows.left.contains(&s.tenant));
            let kept = recovering && (served.as_ref() == before.get(name) || served.is_none() && left);
            if served != meant && !kept {
                return Err(format!("an edge serves {name} for {served:?} instead of {meant:?}"));
            }
            self.shows_whose_it_is(name, served.as_ref())?;
        }
        *self
            .oracle
            .seen
            .entry(if before == self.edges[n].all(&NAMES) { "followed" } else { "followed late" })
            .or_default() += 1;
        Ok(())
    }

    /// A certificate is shown for no other claim than that it was got for.
    fn shows_whose_it_is(&self, name: &str, served: Option<&super::feed::ServedFor>) -> Result<(), String> {
        let Some((served, id)) = served.and_then(|s| Some((s, s.certificate.as_ref()?))) else { return Ok(()) };
        let claim = &self.oracle.claims[&self.issued[id]];
        if claim.name != name || self.numbers[claim.tenant] != served.tenant {
            return Err(format!("an edge serves {name} for {} with the certificate of {claim:?}", served.tenant));
        }
        Ok(())
    }
}
