//! A DNS server that counts what it is asked, and answers as it is told to: a zone's own server, or a resolver.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nameplate::dns::wire::{self, Asked};
use nameplate::dns::world::{Reply, Who, ZoneStore};
use nameplate::env::Env;
use nameplate::model::look::{Answer, Caa, Data, Kind, Outcome, Rr};
use nameplate::sandbox::dns::Sockets;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

/// What it does with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// What its world says.
    Answers,
    /// Nothing.
    Silent,
    /// "Too long, come by TCP", and there an octet now and then.
    Drips,
    /// As many records of the type that is asked for as a message holds.
    Heaps,
    /// On to thirty servers of a deeper zone, each time.
    Refers,
    /// Packets without end that answer something else.
    Floods,
}

/// A running one; it stops when dropped.
pub struct Counted {
    pub at: SocketAddr,
    asked: Arc<AtomicUsize>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

/// What a server is made of.
#[derive(Clone)]
struct Role {
    world: ZoneStore,
    who: Who,
    manner: Manner,
    asked: Arc<AtomicUsize>,
}

impl Counted {
    /// Starts as `who` in a world.
    pub async fn start(world: &ZoneStore, who: Who, manner: Manner) -> Counted {
        let Sockets { udp, tcp } = Sockets::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).await.unwrap();
        let at = tcp.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let role = Role { world: world.clone(), who, manner, asked: asked.clone() };
        let over_tcp = role.clone();
        let packets = tokio::spawn(async move {
            let mut octets = vec![0; 4096];
            loop {
                let Ok((length, from)) = udp.recv_from(&mut octets).await else { continue };
                let n = role.asked.fetch_add(1, Ordering::SeqCst);
                let Some(asked) = wire::asked(&octets[..length]) else { continue };
                if role.manner == Manner::Floods {
                    for _ in 0..1_000 {
                        let _ = udp.send_to(&[0xee; 1_400], from).await;
                    }
                }
                if let Some(answer) = role.answer(&asked, n, true) {
                    let _ = udp.send_to(&answer, from).await;
                }
            }
        });
        let streams = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = tcp.accept().await else { continue };
                let role = over_tcp.clone();
                // Who goes away ends its own connection only.
                tokio::spawn(async move { role.converse(stream).await.unwrap_or_default() });
            }
        });
        Counted { at, asked, _tasks: [AbortOnDropHandle::new(packets), AbortOnDropHandle::new(streams)] }
    }

    /// How many questions came, by either way.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Role {
    fn answer(&self, asked: &Asked, n: usize, udp: bool) -> Option<Vec<u8>> {
        let recursive = matches!(self.who, Who::Resolver(_));
        let limit = if udp { asked.udp_limit() } else { usize::from(u16::MAX) };
        let answer = match self.manner {
            Manner::Silent | Manner::Floods => return None,
            Manner::Drips if udp => return wire::cut(asked, recursive).ok(),
            Manner::Drips => return None,
            Manner::Heaps if udp => return wire::cut(asked, recursive).ok(),
            Manner::Heaps => {
                // As many as fit: what does not is marked as cut (TC), and nobody would read it.
                let messages =
                    [4_000, 2_000, 1_000, 500, 250].map(|n| wire::reply(asked, &heap(asked, n), recursive, limit));
                return messages.into_iter().flatten().find(|message| message.len() > 10_000 && message[2] & 2 == 0);
            }
            Manner::Refers => deeper(asked, n),
            Manner::Answers => match self.world.answer(&self.who, &asked.name, asked.kind) {
                Reply::Answer(answer) => answer,
                Reply::Truncated if udp => return wire::cut(asked, recursive).ok(),
                Reply::Truncated | Reply::Silence => return None,
            },
        };
        wire::reply(asked, &answer, recursive, limit).ok()
    }

    async fn converse(&self, mut stream: TcpStream) -> io::Result<()> {
        let n = self.asked.fetch_add(1, Ordering::SeqCst);
        let mut octets = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut octets).await?;
        let Some(asked) = wire::asked(&octets) else { return Ok(()) };
        if let Some(answer) = self.answer(&asked, n, false) {
            let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
            return stream.write_all(&[&length.to_be_bytes()[..], &answer].concat()).await;
        }
        stream.write_all(&u16::MAX.to_be_bytes()).await?;
        loop {
            stream.write_all(&[0]).await?;
            Env::real().sleep(Duration::from_millis(40)).await;
        }
    }
}

fn rr(name: &str, data: Data) -> Rr {
    Rr { name: name.to_owned(), ttl: 300, data }
}

/// So many records of what is asked for: a zone of ten thousand says no more in one message than it holds.
fn heap(asked: &Asked, many: u16) -> Answer {
    let one = |n: u16| {
        let [high, low] = n.to_be_bytes();
        match asked.kind {
            Kind::A => Data::A(Ipv4Addr::new(198, 18, high, low)),
            Kind::Ns => Data::Ns(format!("ns{n}.{}", asked.name)),
            Kind::Caa => Data::Caa(Caa { flags: 0, tag: "issue".into(), value: format!("ca{n}.example").into_bytes() }),
            _ => Data::Txt(vec![format!("nameplate-verify={n:032x}").into_bytes()]),
        }
    };
    let records = (0..many).map(|n| rr(&asked.name, one(n))).collect();
    Answer { authoritative: true, records, ..Answer::bare(Outcome::NoError) }
}

/// Thirty servers of a deeper zone, which are the same one again.
fn deeper(asked: &Asked, n: usize) -> Answer {
    let mut answer = Answer::bare(Outcome::NoError);
    for i in 0..30 {
        let host = format!("ns{i}.r{n}.{}", asked.name);
        answer.authority.push(rr(&asked.name, Data::Ns(host.clone())));
        answer.additional.push(rr(&host, Data::A(Ipv4Addr::new(198, 51, 100, 1))));
    }
    answer
}
