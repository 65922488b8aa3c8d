//! The real look-ups: own queries over UDP, then TCP, to configured resolvers and to the zones' own servers.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use super::gate::{Gate, Sending};
use super::limits::{Budget, Exchange, Limits, look_within};
use super::{Look, wire};
use crate::env::Env;
use crate::model::look::{Answer, Ask, Observer, Outcome, Probe, Seen, name};

/// The largest packet that is read; three times what we offer to take.
const MAX_PACKET: usize = 4096;

/// What a server answers that cannot read a question (FORMERR).
const FORMAT_ERROR: Outcome = Outcome::Other(1);

/// Where the servers of zones are reached.
#[derive(Clone, Debug)]
pub enum AddressMap {
    /// At their own address, port 53.
    Direct,
    /// Only those listed, where the table says: the sandbox and tests, whose zones run on loopback.
    Table(Arc<HashMap<IpAddr, SocketAddr>>),
}

impl AddressMap {
    /// A table.
    pub fn table(entries: impl IntoIterator<Item = (IpAddr, SocketAddr)>) -> Self {
        AddressMap::Table(Arc::new(entries.into_iter().collect()))
    }

    fn place(&self, address: IpAddr) -> Option<SocketAddr> {
        match self {
            AddressMap::Direct => Some(SocketAddr::new(address, 53)),
            AddressMap::Table(table) => table.get(&address).copied(),
        }
    }
}

/// How to look.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The recursive resolvers, in order of preference, with their labels; the first should validate.
    pub resolvers: Vec<(String, SocketAddr)>,
    /// Where zones' own servers are.
    pub servers: AddressMap,
    /// What one look may cost.
    pub limits: Limits,
}

/// The real [`Look`].
#[derive(Clone)]
pub struct Observers {
    settings: Settings,
    labels: Vec<String>,
    gate: Option<Gate>,
    env: Env,
}

impl Observers {
    /// Observers as the settings say.
    pub fn new(settings: Settings, env: Env) -> Self {
        let labels = settings.resolvers.iter().map(|(label, _)| label.clone()).collect();
        Observers { settings, labels, gate: None, env }
    }

    /// Everything passes this gate.
    #[must_use]
    pub fn behind(self, gate: Gate) -> Self {
        Observers { gate: Some(gate), ..self }
    }

    /// Waits until a packet may be sent; none when the look cannot wait so long.
    async fn turn(&self, to: SocketAddr, own_resolver: bool, budget: &Budget) -> Option<Option<Sending>> {
        let Some(running) = &budget.running else { return Some(None) };
        let stood = budget.clock.stood(self.env.now());
        match budget.clock.wait(&self.env, running.packet(to, own_resolver, stood)).await {
            Ok(sending) => Some(Some(sending)),
            Err(wait) => {
                budget.put_off(wait);
                None
            }
        }
    }

    /// The resolvers' labels, in order of preference.
    pub(super) fn labels(&self) -> &[String] {
        &self.labels
    }

    /// One exchange, in as many packets as the budget allows; none when they do not suffice.
    async fn converse(&self, probe: &Probe, to: SocketAddr, own_resolver: bool, budget: &Budget) -> Option<Answer> {
        let id = u16::from_be_bytes(self.env.draw());
        let question = match &probe.observer {
            Observer::Unchecked(_) => wire::query_unchecked(id, &probe.name, probe.kind),
            Observer::Resolver(_) | Observer::Server { .. } => wire::query(id, &probe.name, probe.kind, own_resolver),
        };
        let answer = self.put(question, id, probe, to, budget).await?;
        if answer.outcome != FORMAT_ERROR {
            return Some(answer);
        }
        // Some old servers take the extension itself for an error; what they say without it counts.
        let id = u16::from_be_bytes(self.env.draw());
        self.put(wire::query_plain(id, &probe.name, probe.kind, own_resolver), id, probe, to, budget).await
    }

    /// One question, by UDP and then by TCP where it has to be.
    async fn put(
        &self,
        question: Result<Vec<u8>, wire::WireError>,
        id: u16,
        probe: &Probe,
        to: SocketAddr,
        budget: &Budget,
    ) -> Option<Answer> {
        let question = match question {
            Ok(question) => question,
            // A name that no message can carry is asked of nobody, and costs nothing.
            Err(e) => return Some(Answer::bare(Outcome::Unusable(e.to_string()))),
        };
        let own_resolver = !matches!(probe.observer, Observer::Server { .. });
        let sending = self.turn(to, own_resolver, budget).await?;
        let by_udp = self.by_udp(&question, id, probe, to, sending.as_ref(), budget).await;
        drop(sending);
        Some(match by_udp {
            Ok(Some((answer, false))) => answer,
            Ok(Some((cut, true))) => {
                let _sending = self.turn(to, own_resolver, budget).await?;
                let tcp = by_tcp(&question, id, probe, to, budget);
                match self.within(self.settings.limits.per_query, tcp).await {
                    Some(Ok(answer)) => answer,
                    Some(Err(Trouble::Spent)) => return None,
                    _ => Answer { ede: cut.ede, ..Answer::bare(Outcome::Truncated) },
                }
            }
            Ok(None) => Answer::bare(Outcome::Timeout),
            // Nobody listens there: as good as silence, but known at once.
            Err(Trouble::Io(e)) if e.kind() == io::ErrorKind::ConnectionRefused => Answer::bare(Outcome::Timeout),
            Err(Trouble::Spent) => return None,
            Err(e) => Answer::bare(Outcome::Unusable(e.to_string())),
        })
    }

    /// Asks by UDP, and once more after a while: a lost packet is common, and an answer to either counts.
    async fn by_udp(
        &self,
        question: &[u8],
        id: u16,
        probe: &Probe,
        to: SocketAddr,
        sending: Option<&Sending>,
        budget: &Budget,
    ) -> Result<Option<(Answer, bool)>, Trouble> {
        let any = match to.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind((any, 0)).await?;
        // A connected socket takes packets from its peer only.
        socket.connect(to).await?;
        let mut octets = vec![0; MAX_PACKET];
        let first = self.settings.limits.per_query / 3;
        for (again, wait) in [(false, first), (true, self.settings.limits.per_query.saturating_sub(first))] {
            // A second packet that has no turn is not sent: the first may still be answered.
            if (!again || sending.is_none_or(Sending::again)) && budget.send() {
                socket.send(question).await?;
            } else if !again {
                return Err(Trouble::Spent);
            }
            if let Some(answer) = self.within(wait, received(&socket, &mut octets, id, probe, budget)).await {
                return answer.map(Some);
            }
        }
        Ok(None)
    }

    async fn within<T>(&self, time: Duration, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.env.sleep(time) => None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("the exchange broke off: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Wire(#[from] wire::WireError),
    #[error("the look has spent what it may")]
    Spent,
}

async fn received(
    socket: &UdpSocket,
    octets: &mut [u8],
    id: u16,
    probe: &Probe,
    budget: &Budget,
) -> Result<(Answer, bool), Trouble> {
    loop {
        let length = socket.recv(octets).await?;
        if !budget.receive(length) {
            return Err(Trouble::Spent);
        }
        match wire::answer(&octets[..length], id, &probe.name, probe.kind) {
            // A late answer to another question, or somebody's guess: the right one may still come.
            Err(wire::WireError::NotOurs) => {}
            other => return Ok(other?),
        }
    }
}

async fn by_tcp(question: &[u8], id: u16, probe: &Probe, to: SocketAddr, budget: &Budget) -> Result<Answer, Trouble> {
    if !budget.send() {
        return Err(Trouble::Spent);
    }
    let mut stream = TcpStream::connect(to).await?;
    let own_length = u16::try_from(question.len()).unwrap_or(u16::MAX);
    let mut framed = own_length.to_be_bytes().to_vec();
    framed.extend_from_slice(question);
    stream.write_all(&framed).await?;
    let length = usize::from(stream.read_u16().await?);
    // Before it is taken in: many large answers may be on their way at once.
    if !budget.receive(length) {
        return Err(Trouble::Spent);
    }
    let mut octets = vec![0; length];
    stream.read_exact(&mut octets).await?;
    let (answer, cut) = wire::answer(&octets, id, &probe.name, probe.kind)?;
    Ok(if cut { Answer::bare(Outcome::Truncated) } else { answer })
}

#[async_trait]
impl Exchange for Observers {
    async fn exchange(&self, probe: &Probe, budget: &Budget) -> Option<Answer> {
        let (place, own_resolver) = match &probe.observer {
            Observer::Resolver(label) | Observer::Unchecked(label) => {
                (self.settings.resolvers.iter().find(|(l, _)| l == label).map(|(_, place)| *place), true)
            }
            Observer::Server { address, .. } => (self.settings.servers.place(*address), false),
        };
        match place {
            Some(place) => budget.clock.exchange(&self.env, self.converse(probe, place, own_resolver, budget)).await,
            // Nothing is sent, but it is a question all the same.
            None => budget.send().then(|| Answer::bare(Outcome::Timeout)),
        }
    }
}

#[async_trait]
impl Look for Observers {
    async fn look(&self, ask: &Ask) -> Seen {
        let Some(gate) = &self.gate else {
            return look_within(ask, &self.labels, self.settings.limits, Some(&self.env), None, self).await;
        };
        let running = match gate.enter(ask).await {
            Ok(running) => running,
            Err(wait) => return Seen { put_off: Some(wait), ..Seen::default() },
        };
        let seen = look_within(ask, &self.labels, self.settings.limits, Some(&self.env), Some(running), self).await;
        let servers = seen.observations.iter().filter_map(|o| match &o.probe.observer {
            Observer::Server { address, .. } if name::within(&o.probe.name, &ask.registered_domain) => {
                self.settings.servers.place(*address)
            }
            _ => None,
        });
        gate.learn(&ask.registered_domain, servers);
        seen
    }
}
