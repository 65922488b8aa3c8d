//! Whoever is told: receivers of webhooks and a mailbox, scripted, with what they got; and a notifier over a rig.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use nameplate::app::alerts::{self, AlertSettings, Passed};
use nameplate::app::notify::{Notifier, NotifySettings};
use nameplate::app::webhooks::{self, NewWebhook};
use nameplate::model::hook_url::{HookRules, HookUrl};
use nameplate::model::id::{CertificateId, DomainId, TenantId, WebhookId};
use nameplate::model::moment::Moment;
use nameplate::model::secret::Secret;
use nameplate::notify::mail::{MailError, Mailer};
use nameplate::notify::message::Message;
use nameplate::reach::ReachError;
use nameplate::reach::hook::{HookReply, HookRequest, Hooks};
use nameplate::store::{expiry, feed, sql};
use serde_json::Value;

use super::rig::Rig;

/// A request that came.
#[derive(Clone, Debug)]
pub struct Got {
    pub url: String,
    pub id: String,
    pub body: Value,
    pub raw: Vec<u8>,
    pub headers: BTreeMap<String, String>,
    pub at: Moment,
    pub taken: bool,
}

impl Got {
    pub fn kind(&self) -> &str {
        self.body["type"].as_str().unwrap()
    }
}

/// What a receiver answers: a status, or nothing at all.
pub type Answers = Arc<dyn Fn(&Got) -> Result<u16, ReachError> + Send + Sync>;

/// Receivers, all in one.
#[derive(Clone)]
pub struct Receivers {
    got: Arc<Mutex<Vec<Got>>>,
    answers: Arc<Mutex<Answers>>,
    clock: nameplate::env::Env,
}

impl Receivers {
    pub fn new(rig: &Rig) -> Receivers {
        let all_well: Answers = Arc::new(|_| Ok(200));
        Receivers { got: Arc::default(), answers: Arc::new(Mutex::new(all_well)), clock: rig.env.clone() }
    }

    pub fn answer(&self, answers: impl Fn(&Got) -> Result<u16, ReachError> + Send + Sync + 'static) {
        *self.answers.lock().unwrap() = Arc::new(answers);
    }

    /// Nobody answers.
    pub fn down(&self) {
        self.answer(|_| Err(ReachError::TimedOut(Duration::from_secs(15))));
    }

    pub fn up(&self) {
        self.answer(|_| Ok(204));
    }

    /// Everything that came, taken or not.
    pub fn tries(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    /// What was taken, in order.
    pub fn taken(&self) -> Vec<Got> {
        self.tries().into_iter().filter(|got| got.taken).collect()
    }

    pub fn kinds(&self) -> Vec<String> {
        self.taken().iter().map(|got| got.kind().to_owned()).collect()
    }
}

#[async_trait]
impl Hooks for Receivers {
    async fn post(&self, hook: &HookUrl, _: &[IpAddr], request: &HookRequest) -> Result<HookReply, ReachError> {
        let headers: BTreeMap<String, String> = request.headers.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        let mut got = Got {
            url: format!("{}{}", hook.authority(), hook.path),
            id: headers["webhook-id"].clone(),
            body: serde_json::from_slice(&request.body).unwrap(),
            raw: request.body.clone(),
            headers,
            at: self.clock.now(),
            taken: false,
        };
        let answers = self.answers.lock().unwrap().clone();
        let answer = answers(&got);
        got.taken = matches!(answer, Ok(200..=299));
        self.got.lock().unwrap().push(got);
        answer.map(|status| HookReply { status, retry_after: None })
    }
}

/// A mailbox: what was handed in, and how it answers.
#[derive(Clone, Default)]
pub struct Mailbox {
    pub messages: Arc<Mutex<Vec<Message>>>,
    pub tries: Arc<Mutex<usize>>,
    /// To whom and under which name, of every try.
    pub tried: Arc<Mutex<Vec<(String, String)>>>,
    pub refuses: Arc<Mutex<Option<MailError>>>,
}

impl Mailbox {
    pub fn all(&self) -> Vec<Message> {
        self.messages.lock().unwrap().clone()
    }

    pub fn refuse(&self, with: Option<MailError>) {
        *self.refuses.lock().unwrap() = with;
    }
}

#[async_trait]
impl Mailer for Mailbox {
    async fn send(&self, message: &Message) -> Result<(), MailError> {
        *self.tries.lock().unwrap() += 1;
        self.tried.lock().unwrap().push((message.to.clone(), message.id.clone()));
        match self.refuses.lock().unwrap().clone() {
            Some(error) => Err(error),
            None => {
                self.messages.lock().unwrap().push(message.clone());
                Ok(())
            }
        }
    }
}

/// A rig with those who tell and those who are told.
pub struct Told {
    pub rig: Rig,
    pub receivers: Receivers,
    pub mailbox: Mailbox,
    pub notifier: Notifier,
    pub alerts: AlertSettings,
    /// Whether the domains' own work is left undone.
    pub workers_gone: bool,
}

pub const OPERATOR: &str = "oncall@platform.example";

impl Told {
    pub async fn new(seed: u64) -> Told {
        Told::on(Rig::new(seed).await).await
    }

    pub async fn on(rig: Rig) -> Told {
        Self::unwanting(rig, &[]).await
    }

    /// Operators get no mail of these kinds of alerts.
    pub async fn unwanting(rig: Rig, unwanted: &[&str]) -> Told {
        let (receivers, mailbox) = (Receivers::new(&rig), Mailbox::default());
        rig.zones.add("hooks.acme.test. 60 IN A 192.0.2.99").unwrap();
        let unwanted = unwanted.iter().map(|kind| (*kind).to_owned()).collect();
        let settings = NotifySettings { operators: vec![OPERATOR.to_owned()], unwanted, ..NotifySettings::default() };
        let notifier =
            Notifier::new(rig.app.clone(), Arc::new(receivers.clone()), Some(Arc::new(mailbox.clone())), settings);
        Told { rig, receivers, mailbox, notifier, alerts: AlertSettings::default(), workers_gone: false }
    }

    /// A place for these kinds.
    pub async fn webhook(&self, tenant: Option<&TenantId>, kinds: &[&str]) -> (WebhookId, Secret) {
        self.webhook_at(tenant, "https://hooks.acme.test/in", kinds).await
    }

    pub async fn webhook_at(&self, tenant: Option<&TenantId>, url: &str, kinds: &[&str]) -> (WebhookId, Secret) {
        let kinds: Vec<String> = kinds.iter().map(|k| (*k).to_owned()).collect();
        let new = NewWebhook { tenant: tenant.cloned(), url, kinds: &kinds };
        let mut tx = self.rig.app.store.begin().await.unwrap();
        let rules = HookRules::default();
        let (row, secret) = webhooks::add_in(&mut tx, &self.rig.app, &rules, new, "operator").await.unwrap();
        tx.commit().await.unwrap();
        (row.id, secret)
    }

    /// The relay: gives events their places in the stream.
    pub async fn number(&self) {
        let mut tx = self.rig.app.store.begin().await.unwrap();
        feed::number(&mut tx, "test", self.rig.env.now(), 10_000).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// A look for alerts, in a world whose edge is there and whose domains have nothing due.
    pub async fn watch(&self) -> Passed {
        self.rig.edge_follows().await;
        if !self.workers_gone {
            let stmt = sql("UPDATE domains SET due_at = $2 WHERE due_at <= $1").bind(self.rig.env.now()).bind(Moment::NEVER);
            self.rig.app.store.execute(stmt).await.unwrap();
        }
        alerts::pass(&self.rig.app, &self.alerts).await.unwrap()
    }

    /// What the loops of a process do in twenty seconds of virtual time.
    pub async fn beat(&self) {
        self.watch().await;
        self.number().await;
        self.notifier.round().await.unwrap();
        self.rig.hand.advance(Duration::from_secs(20));
    }

    /// The same for a time.
    pub async fn beats(&self, time: Duration) {
        let end = self.rig.env.now() + time;
        while self.rig.env.now() < end {
            self.beat().await;
        }
    }

    /// A tenant with live domains.
    pub async fn live(&self, slug: &str, many: usize) -> (TenantId, Vec<DomainId>) {
        let tenant = self.rig.tenant(slug).await;
        let mut all = Vec::new();
        for n in 0..many {
            let name = format!("n{n}.{slug}.test");
            let id = self.rig.claim(&tenant, &name).await;
            self.rig.publish(&id, &name).await;
            all.push(id);
        }
        for id in &all {
            self.rig.until_active(id, Duration::from_secs(3600)).await;
        }
        (tenant, all)
    }

    /// The domain's certificate becomes one that lasts so long, from now on.
    pub async fn lives(&self, id: &DomainId, life: Duration) {
        let now = self.rig.env.now();
        let end = now + life;
        let stmt = sql(
            "UPDATE certificates SET not_before = $2, not_after = $3 WHERE id = (SELECT certificate_id FROM domains WHERE id = $1)",
        );
        self.rig.app.store.execute(stmt.bind(id.as_str()).bind(now).bind(end)).await.unwrap();
        let stmt = sql("UPDATE domains SET certificate_until = $2 WHERE id = $1 AND claim = 'live'");
        self.rig.app.store.execute(stmt.bind(id.as_str()).bind(end)).await.unwrap();
        self.rig.app.store.execute(expiry::touch(id)).await.unwrap();
    }

    /// Every name was changed behind the program's back.
    pub async fn touch_all(&self) {
        let stmt = sql("INSERT INTO expiry_looks (domain_id, due_at, touched) SELECT id, 0, 1 FROM domains WHERE id <> '' \
             ON CONFLICT (domain_id) DO UPDATE SET due_at = 0, touched = expiry_looks.touched + 1");
        self.rig.app.store.execute(stmt).await.unwrap();
    }

    /// The domain gets another certificate, as by a renewal, good for so long.
    pub async fn renewed(&self, id: &DomainId, life: Duration) {
        let now = self.rig.env.now();
        let new = nameplate::mint!(self.rig.env, CertificateId);
        let stmt =
            sql("INSERT INTO certificates (id, domain_id, tenant_id, source, issuer_id, serial, fingerprint, chain, \
               sealed_key, not_before, not_after, stored_at) \
             SELECT $2, c.domain_id, c.tenant_id, c.source, c.issuer_id, $2, $2, c.chain, c.sealed_key, $3, $4, $3 \
             FROM certificates c JOIN domains d ON d.certificate_id = c.id WHERE d.id = $1");
        let stmt = stmt.bind(id.as_str()).bind(new.as_str()).bind(now).bind(now + life);
        self.rig.app.store.execute(stmt).await.unwrap();
        let stmt = sql("UPDATE domains SET certificate_id = $2, certificate_until = $3 WHERE id = $1");
        self.rig.app.store.execute(stmt.bind(id.as_str()).bind(new.as_str()).bind(now + life)).await.unwrap();
        self.rig.app.store.execute(expiry::touch(id)).await.unwrap();
    }

    /// Events of this kind in the log.
    pub async fn logged(&self, kind: &'static str) -> i64 {
        self.rig.count(sql("SELECT count(*) AS n FROM events WHERE kind = $1").bind(kind)).await
    }

    /// Deliveries in this state.
    pub async fn deliveries(&self, state: &'static str) -> i64 {
        self.rig.count(sql("SELECT count(*) AS n FROM deliveries WHERE state = $1").bind(state)).await
    }
}
