//! Serves one role of a world on a pair of sockets.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::sockets::Sockets;
use crate::dns::wire;
use crate::dns::world::{Reply, Who, ZoneStore};

/// How many questions one TCP connection may bring.
const PER_CONNECTION: usize = 64;

/// A running server; it stops when dropped.
#[derive(Debug)]
pub struct DnsServer {
    address: SocketAddr,
    tasks: [JoinHandle<()>; 2],
}

impl DnsServer {
    /// Starts answering.
    pub fn start(world: ZoneStore, role: Who, sockets: Sockets) -> io::Result<Self> {
        let address = sockets.address()?;
        let role = Arc::new(role);
        let Sockets { udp, tcp } = sockets;
        let packets = tokio::spawn({
            let (world, role) = (world.clone(), role.clone());
            async move {
                let mut octets = vec![0; 4096];
                loop {
                    // An error here is about a packet sent before (an unreachable port); the next one may be fine.
                    let Ok((length, from)) = udp.recv_from(&mut octets).await else { continue };
                    if let Some(answer) = respond(&world, &role, &octets[..length], true) {
                        let _ = udp.send_to(&answer, from).await;
                    }
                }
            }
        });
        let streams = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = tcp.accept().await else {
                    tokio::task::yield_now().await;
                    continue;
                };
                let (world, role) = (world.clone(), role.clone());
                tokio::spawn(async move {
                    // A client that goes away ends its own connection only.
                    let _ = converse(stream, &world, &role).await;
                });
            }
        });
        Ok(DnsServer { address, tasks: [packets, streams] })
    }

    /// Where it listens, by UDP and TCP.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn converse(mut stream: TcpStream, world: &ZoneStore, role: &Who) -> io::Result<()> {
    for _ in 0..PER_CONNECTION {
        let mut octets = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut octets).await?;
        let Some(answer) = respond(world, role, &octets, false) else { return Ok(()) };
        let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
        stream.write_all(&[&length.to_be_bytes()[..], &answer].concat()).await?;
    }
    Ok(())
}

/// The octets to send back; `None` for silence.
fn respond(world: &ZoneStore, role: &Who, octets: &[u8], udp: bool) -> Option<Vec<u8>> {
    let asked = wire::asked(octets)?;
    let recursive = matches!(role, Who::Resolver(_));
    let limit = if udp { asked.udp_limit() } else { usize::from(u16::MAX) };
    let answer = if asked.unchecked() { ZoneStore::answer_unchecked } else { ZoneStore::answer };
    match answer(world, role, &asked.name, asked.kind) {
        Reply::Answer(answer) => wire::reply(&asked, &answer, recursive, limit).ok(),
        Reply::Truncated if udp => wire::cut(&asked, recursive).ok(),
        Reply::Truncated | Reply::Silence => None,
    }
}
