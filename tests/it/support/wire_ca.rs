//! The rig with the sandbox's CA on a real socket, asked by the real adapter: every fault travels the whole way, in virtual time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nameplate::acme::{Authority, HttpSettings, InstantAcme, Paces, Roots};
use nameplate::app;
use nameplate::model::hostname::Hostname;
use nameplate::model::id::DomainId;
use nameplate::model::moment::Moment;
use nameplate::model::records::ApexRoute;
use nameplate::reach::{Place, Reach as _};
use nameplate::sandbox::ca::{Counters, Fault, Kind, Problem, RunningCa, Script, Settings, TestCa, Validation};
use nameplate::store::{alerts, sql};
use tokio::net::TcpListener;

use super::rig::{EdgeSide, Rig};

/// What the CA sees: the rig's edge.
struct AtTheEdge(EdgeSide);

#[async_trait]
impl Validation for AtTheEdge {
    async fn fetch_http01(&self, host: &str, token: &str) -> Result<Vec<u8>, Problem> {
        let at: IpAddr = "192.0.2.80".parse().unwrap();
        let path = format!("/.well-known/acme-challenge/{token}");
        let place = Place { tls: false, host: Hostname::trusted(host), path };
        match self.0.ask(&place, &[at]).await.remove(0).outcome {
            Ok(reply) if reply.status == 200 => Ok(reply.body),
            Ok(reply) => Err(Problem::new(Kind::Unauthorized, format!("the server answered {}", reply.status))),
            Err(e) => Err(Problem::new(Kind::Connection, e.to_string())),
        }
    }

    async fn caa_permits(&self, _: &str, _: &str) -> Result<(), Problem> {
        Ok(())
    }
}

/// A rig, and its CA on loopback.
pub struct WireCa {
    pub rig: Rig,
    pub ca: TestCa,
    running: RunningCa,
}

impl WireCa {
    pub async fn new(seed: u64, settings: Settings) -> WireCa {
        WireCa::around(Rig::new(seed).await, settings).await
    }

    /// A name whose records are in place, and what is to go wrong with it.
    pub async fn claimed(name: &str, faults: impl IntoIterator<Item = Fault>) -> (WireCa, DomainId) {
        let world = WireCa::new(5, Settings::default()).await;
        faults.into_iter().for_each(|fault| {
            world.script().add(fault);
        });
        let tenant = world.rig.tenant("acme").await;
        let id = world.rig.claim(&tenant, name).await;
        world.rig.publish(&id, name).await;
        (world, id)
    }

    pub async fn around(rig: Rig, settings: Settings) -> WireCa {
        let ca = TestCa::new(settings, rig.env.clone(), Arc::new(AtTheEdge(rig.edge_side.clone()))).unwrap();
        let running = ca.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
        let mut world = WireCa { rig, ca, running };
        world.kill();
        world
    }

    /// Every process that spoke to the CA is gone; what begins again knows what is in rows, and nothing else.
    pub fn kill(&mut self) {
        // Time stands still while the CA is asked.
        let pace = Paces::open();
        let settings = HttpSettings { roots: Roots::Pem(self.ca.root_pem().into()), pace, ..HttpSettings::default() };
        let client = InstantAcme::new(self.running.directory_url(), &settings, &self.rig.env).unwrap();
        let authority: Arc<dyn Authority> = Arc::new(client);
        self.rig.app.authorities = Arc::new(HashMap::from([("main".to_owned(), authority)]));
    }

    /// Where this CA's directory is.
    pub fn directory(&self) -> String {
        self.running.directory_url().to_owned()
    }

    /// What speaks for the issuer is at another CA from now on.
    pub fn speak_to(&mut self, other: &WireCa) {
        self.rig.app.authorities = other.rig.app.authorities.clone();
    }

    pub fn script(&self) -> &Script {
        self.ca.script()
    }

    pub fn counters(&self) -> Counters {
        self.ca.state().counters().clone()
    }

    /// One turn of the rig. While the CA holds a request, time goes on to whatever waits first; whether a worker was cut.
    pub async fn turn(&self) -> bool {
        tokio::select! {
            biased;
            cut = self.rig.turn() => cut,
            () = self.time_passes() => false,
        }
    }

    async fn time_passes(&self) {
        let mut seen = self.script().holds();
        loop {
            self.script().holding(seen).await;
            seen += 1;
            if let Some(next) = self.rig.hand.next_wake() {
                self.rig.hand.advance_to(next);
            }
        }
    }

    /// Turns for a time.
    pub async fn pass(&self, time: Duration) {
        let end = self.rig.env.now() + time;
        while self.rig.env.now() < end {
            self.turn().await;
        }
    }

    /// Turns until the domain is active.
    pub async fn until_active(&self, id: &DomainId, limit: Duration) {
        let end = self.rig.env.now() + limit;
        while self.rig.active_since(id).await.is_none() {
            assert!(self.rig.env.now() < end, "not active after {limit:?}: {}", self.story(id).await);
            self.turn().await;
        }
    }

    /// What everybody who looks at the domain is shown, as JSON.
    pub async fn shown(&self, id: &DomainId) -> String {
        let view = app::show::domain(&self.rig.app.store, &ApexRoute::default(), id, self.rig.env.now()).await.unwrap();
        serde_json::to_string(&view.unwrap()).unwrap()
    }

    /// What happened, for a failing test: events, orders, faults.
    pub async fn story(&self, id: &DomainId) -> String {
        let stmt = sql("SELECT state, problem FROM orders WHERE domain_id = $1 ORDER BY created_at").bind(id.as_str());
        let rows = self.rig.app.store.query(stmt).await.unwrap();
        let orders: Vec<_> = rows.iter().map(|r| (r.text("state").unwrap(), r.opt_text("problem").unwrap())).collect();
        let events = self.rig.events(id).await.join(" ");
        let faults: Vec<_> = self.script().happened().iter().rev().take(8).map(|h| (h.endpoint, h.what.clone())).collect();
        let time = self.rig.env.now().since(super::rig::START);
        format!("after {time:?}: orders {orders:?}; events {events}; last faults {faults:?}")
    }

    /// When the domain's row wants to be looked at, and since when its order may be placed.
    pub async fn waits_until(&self, id: &DomainId) -> Moment {
        let stmt = sql("SELECT d.due_at, o.not_before FROM domains d LEFT JOIN orders o ON o.domain_id = d.id \
               AND o.state NOT IN ('issued', 'failed', 'lost') WHERE d.id = $1");
        let rows = self.rig.app.store.query(stmt.bind(id.as_str())).await.unwrap();
        let due = rows[0].moment("due_at").unwrap();
        due.max(rows[0].opt_moment("not_before").unwrap().unwrap_or(due))
    }

    /// How many orders of the domain ended as this.
    pub async fn ended_as(&self, id: &DomainId, state: &'static str) -> u64 {
        let stmt = sql("SELECT count(*) AS n FROM orders WHERE domain_id = $1 AND state = $2").bind(id.as_str()).bind(state);
        self.rig.count(stmt).await.try_into().unwrap()
    }

    /// What operators are told of the CA now, kind and subject, after the time that an end takes to be believed.
    pub async fn alerts(&self) -> Vec<(String, String)> {
        let settings = app::alerts::AlertSettings::default();
        for _ in 0..3 {
            app::alerts::pass(&self.rig.app, &settings).await.unwrap();
            self.rig.hand.advance(Duration::from_secs(301));
        }
        let open = alerts::open_of_platform(&self.rig.app.store).await.unwrap();
        let of_ca = |kind: &str| matches!(kind, "challenge_type_missing" | "clock_differs" | "issuer_unwell");
        open.into_iter().filter(|a| of_ca(&a.kind)).map(|a| (a.kind, a.subject)).collect()
    }

    /// What must be true of everything once a domain is served, whatever went wrong before.
    pub async fn settled(&self, id: &DomainId, what: &str) {
        self.rig.check_invariants().await;
        let story = self.story(id).await;
        let none = async |stmt, says: &str| assert_eq!(self.rig.count(stmt).await, 0, "{what}: {says}: {story}");
        none(sql("SELECT count(*) AS n FROM orders WHERE state NOT IN ('issued', 'failed', 'lost')"), "an order is open")
            .await;
        none(sql("SELECT count(*) AS n FROM grants WHERE state = 'open'"), "a grant is in hand").await;
        none(sql("SELECT count(*) AS n FROM challenges WHERE removed_at IS NULL"), "a token is still answered").await;
        let stored = sql("SELECT count(*) AS n FROM certificates WHERE domain_id = $1").bind(id.as_str());
        assert_eq!(self.rig.count(stored).await, 1, "{what}: one certificate is stored: {story}");
        let (made, failed, lost) =
            (self.counters().orders_created, self.ended_as(id, "failed").await, self.ended_as(id, "lost").await);
        assert!(made <= 1 + failed + lost, "{what}: {made} orders at the CA, {failed} failed, {lost} lost: {story}");
        assert_eq!(self.counters().accounts_created, 1, "{what}: one account");
    }
}
