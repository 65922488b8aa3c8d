//! Whoever takes the webhooks: it may be down for hours, and keeps what it took.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value;

use crate::env::Env;
use crate::model::hook_url::HookUrl;
use crate::model::moment::Moment;
use crate::reach::ReachError;
use crate::reach::hook::{HookReply, HookRequest, Hooks};

/// Something that was told.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) at: Moment,
    pub(super) kind: String,
    /// To which place.
    pub(super) path: String,
    pub(super) data: Value,
}

#[derive(Default)]
struct Inbox {
    down: bool,
    /// What it does to what it takes: nothing, as a rule.
    swallows: bool,
    doubles: bool,
    /// What was taken and not looked at yet.
    new: Vec<Told>,
    /// Messages that were taken: the same one again is none.
    seen: HashSet<String>,
    taken: u64,
}

/// The receiver.
#[derive(Clone)]
pub(super) struct Receiver {
    env: Env,
    inbox: Arc<Mutex<Inbox>>,
}

impl Receiver {
    pub(super) fn new(env: &Env) -> Self {
        Receiver { env: env.clone(), inbox: Arc::default() }
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn down(&self, yes: bool) {
        self.inbox().down = yes;
    }

    /// From now on nothing that it takes is ever read.
    pub(super) fn swallow(&self) {
        self.inbox().swallows = true;
    }

    /// From now on everything that it takes is read twice.
    pub(super) fn double(&self) {
        self.inbox().doubles = true;
    }

    /// What came since it was last asked, in order.
    pub(super) fn news(&self) -> Vec<Told> {
        std::mem::take(&mut self.inbox().new)
    }

    /// Messages taken, each once.
    pub(super) fn taken(&self) -> u64 {
        self.inbox().taken
    }
}

#[async_trait]
impl Hooks for Receiver {
    async fn post(&self, hook: &HookUrl, _: &[IpAddr], request: &HookRequest) -> Result<HookReply, ReachError> {
        let mut inbox = self.inbox();
        if inbox.down {
            return Ok(HookReply { status: 503, retry_after: None });
        }
        let id = request.headers.iter().find(|(name, _)| *name == "webhook-id").map(|(_, id)| id.clone());
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        // A process that dies after sending sends once more, under the same id: a receiver leaves that out.
        if inbox.seen.insert(id.unwrap_or_default()) {
            let kind = body["type"].as_str().unwrap_or_default().to_owned();
            inbox.taken += 1;
            let told = Told { at: self.env.now(), kind, path: hook.path.clone(), data: body["data"].clone() };
            let times = if inbox.swallows { 0 } else { 1 + usize::from(inbox.doubles) };
            inbox.new.extend(std::iter::repeat_n(told, times));
        }
        Ok(HookReply { status: 200, retry_after: None })
    }
}
