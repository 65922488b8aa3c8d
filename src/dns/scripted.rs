//! Look-ups without sockets: the same loop and the same questions, answered from a [`ZoneStore`] that a test edits as it goes.

use async_trait::async_trait;

use crate::model::look::{Answer, Ask, Observer, Outcome, Probe, Seen};

use super::Look;
use super::limits::{Budget, Exchange, Limits, look_within};
use super::world::{Reply, Who, ZoneStore};

/// The scripted twin of [`Observers`](super::Observers).
#[derive(Clone, Debug)]
pub struct ScriptedDns {
    /// The world it sees; edit it at any time.
    pub world: ZoneStore,
    /// The labels of its resolvers.
    pub resolvers: Vec<String>,
    limits: Limits,
}

impl ScriptedDns {
    /// Three resolvers, `own-a` to `own-c`, over a world.
    pub fn new(world: ZoneStore) -> Self {
        let resolvers = ["own-a", "own-b", "own-c"].map(str::to_owned).to_vec();
        ScriptedDns { world, resolvers, limits: Limits::default() }
    }
}

#[async_trait]
impl Exchange for ScriptedDns {
    async fn exchange(&self, probe: &Probe, budget: &Budget) -> Option<Answer> {
        if !budget.send() {
            return None;
        }
        let (who, unchecked) = match &probe.observer {
            Observer::Resolver(label) => (Who::Resolver(label.clone()), false),
            Observer::Unchecked(label) => (Who::Resolver(label.clone()), true),
            Observer::Server { host, .. } => (Who::Server(host.clone()), false),
        };
        let ask = if unchecked { ZoneStore::answer_unchecked } else { ZoneStore::answer };
        Some(match ask(&self.world, &who, &probe.name, probe.kind) {
            Reply::Answer(answer) => answer,
            Reply::Silence => Answer::bare(Outcome::Timeout),
            Reply::Truncated => Answer::bare(Outcome::Truncated),
        })
    }
}

#[async_trait]
impl Look for ScriptedDns {
    async fn look(&self, ask: &Ask) -> Seen {
        // Nothing here waits, so no deadline can come.
        look_within(ask, &self.resolvers, self.limits, None, None, self).await
    }
}
