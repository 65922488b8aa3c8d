//! Who of the configured resolvers checks signatures.

use std::time::Duration;

use futures::future::join_all;

use super::limits::{Budget, Exchange, Limits};
use super::observers::Observers;
use crate::model::look::{Kind, Observer, Probe};

/// What one such question may cost: it is sent again once, and may come back by TCP.
const LIMITS: Limits =
    Limits { queries: 4, octets: 20_000, time: Duration::from_secs(10), per_query: Duration::from_secs(3) };

impl Observers {
    /// Each resolver, by its label: whether it validates; none while it does not answer. The root is signed, so whoever validates
    /// vouches for what it says of the root (AD, RFC 4035 §3.2.3).
    pub async fn validating(&self) -> Vec<(String, Option<bool>)> {
        join_all(self.labels().iter().map(|label| async move {
            let probe = Probe { observer: Observer::Resolver(label.clone()), name: String::new(), kind: Kind::Soa };
            let answer = self.exchange(&probe, &Budget::new(LIMITS, None)).await.filter(|a| a.definite());
            (label.clone(), answer.map(|a| a.validated))
        }))
        .await
    }
}
