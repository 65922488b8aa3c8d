//! What answers at public names: the fake edge, and whatever a test puts at an address instead.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use nameplate::model::hostname::Hostname;
use nameplate::reach::{Answer, Place, Reach, ReachError, Reply, Served};
use nameplate::vault::distribution::Preflight;

/// The edge's side of public names: what the fake edge has taken from the feed.
#[derive(Clone, Default)]
pub struct EdgeSide {
    pub(super) tokens: Arc<Mutex<HashMap<String, String>>>,
    pub(super) serials: Arc<Mutex<HashMap<String, String>>>,
    pub(super) preflight: Arc<Mutex<Option<Preflight>>>,
    says: Arc<Mutex<HashMap<(String, IpAddr), Says>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Reach for EdgeSide {
    async fn served(&self, host: &Hostname, addresses: &[IpAddr]) -> Vec<Answer<Served>> {
        let serial = self.serials.lock().unwrap().get(host.as_str()).cloned();
        let answer = |a: &IpAddr| Answer {
            address: *a,
            outcome: match &serial {
                Some(serial) => Ok(Served { serial: serial.clone(), trusted: true, status: Some(200) }),
                None => Err(ReachError::TimedOut(Duration::from_secs(10))),
            },
        };
        addresses.iter().map(answer).collect()
    }

    async fn ask(&self, place: &Place, addresses: &[IpAddr]) -> Vec<Answer<Reply>> {
        self.asked.lock().unwrap().push(place.to_string());
        let said = self.says.lock().unwrap();
        let answer = |a: &IpAddr| {
            let at = said.get(&(place.host.to_string(), *a)).or_else(|| said.get(&(String::new(), *a)));
            Answer { address: *a, outcome: at.map_or_else(|| Ok(self.edge_says(place)), |says| says(place)) }
        };
        addresses.iter().map(answer).collect()
    }
}

/// What an address answers.
pub type Says = Arc<dyn Fn(&Place) -> Result<Reply, ReachError> + Send + Sync>;

impl EdgeSide {
    /// What the edge answers to a request for a token.
    pub fn edge_says(&self, place: &Place) -> Reply {
        let token = place.path.strip_prefix("/.well-known/acme-challenge/").unwrap_or_default();
        let known = self.tokens.lock().unwrap().get(token).cloned();
        let body = known.or_else(|| self.preflight.lock().unwrap().as_ref().and_then(|key| key.answer(token)));
        let (status, body) = match body {
            Some(body) => (200, body),
            None => (404, "<h1>Not Found</h1>".to_owned()),
        };
        Reply { status, server: None, sent: None, body: body.into_bytes(), shown: None }
    }

    /// From now on `address` answers for `host` like this; for every host, where that is empty.
    pub fn at(&self, host: &str, address: &str, says: Says) {
        self.says.lock().unwrap().insert((host.to_owned(), address.parse().unwrap()), says);
    }

    /// From now on everything is answered by the edge again.
    pub fn all_well(&self) {
        self.says.lock().unwrap().clear();
    }

    /// The places asked for so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}
