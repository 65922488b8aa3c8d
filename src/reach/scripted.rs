//! The scripted twin: answers what a test said, and remembers what was asked.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::{Answer, Place, Reach, ReachError, Reply, Served};
use crate::model::hostname::Hostname;

#[derive(Default)]
struct Script {
    served: HashMap<Hostname, Served>,
    replies: HashMap<Place, Reply>,
    silent: Vec<IpAddr>,
    asked: Vec<Hostname>,
}

/// Answers from a script; what is not in it does not answer in time.
#[derive(Default)]
pub struct Scripted(Mutex<Script>);

impl Scripted {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on every address of `host` serves this.
    pub fn serve(&self, host: &Hostname, served: Served) {
        self.script().served.insert(host.clone(), served);
    }

    /// From now on every address answers a request for `place` like this.
    pub fn answer(&self, place: &Place, reply: Reply) {
        self.script().replies.insert(place.clone(), reply);
    }

    /// From now on these addresses do not answer.
    pub fn silence(&self, addresses: &[IpAddr]) {
        self.script().silent = addresses.to_vec();
    }

    /// The names asked for so far, one for each call.
    pub fn asked(&self) -> Vec<Hostname> {
        self.script().asked.clone()
    }

    fn each<T>(&self, host: &Hostname, addresses: &[IpAddr], find: impl Fn(&Script) -> Option<T>) -> Vec<Answer<T>> {
        let mut script = self.script();
        script.asked.push(host.clone());
        let answer = |address: &IpAddr| {
            let found = if script.silent.contains(address) { None } else { find(&script) };
            Answer { address: *address, outcome: found.ok_or(ReachError::TimedOut(Duration::from_secs(10))) }
        };
        addresses.iter().map(answer).collect()
    }
}

#[async_trait]
impl Reach for Scripted {
    async fn served(&self, host: &Hostname, addresses: &[IpAddr]) -> Vec<Answer<Served>> {
        self.each(host, addresses, |script| script.served.get(host).cloned())
    }

    async fn ask(&self, place: &Place, addresses: &[IpAddr]) -> Vec<Answer<Reply>> {
        self.each(&place.host, addresses, |script| script.replies.get(place).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_answers_by_its_script_and_remembers_what_was_asked() {
        let (host, reach) = (Hostname::trusted("support.acme.test"), Scripted::default());
        let (one, two): (IpAddr, IpAddr) = ("127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap());
        let served = Served { serial: "0a".into(), trusted: true, status: Some(200) };
        reach.serve(&host, served.clone());
        let place = |path: &str| Place { tls: false, host: host.clone(), path: path.to_owned() };
        let reply = Reply { status: 200, server: None, sent: None, body: b"t.key".to_vec(), shown: None };
        reach.answer(&place("/t"), reply.clone());
        reach.silence(&[two]);
        let answers = reach.served(&host, &[one, two]).await;
        assert_eq!(answers[0].outcome.as_ref().unwrap(), &served);
        assert!(matches!(answers[1].outcome, Err(ReachError::TimedOut(_))));
        assert_eq!(reach.ask(&place("/t"), &[one]).await[0].outcome.as_ref().unwrap(), &reply);
        assert!(reach.ask(&place("/u"), &[one]).await[0].outcome.is_err());
        assert_eq!(reach.asked().len(), 3);
    }
}
