//! A server that counts, and that makes each answer once.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::UdpSocket;
use tokio_util::task::AbortOnDropHandle;

use crate::dns::wire;
use crate::dns::world::{Reply, Who, ZoneStore};

/// Answers that are kept; beyond them each is made anew.
const KEPT: usize = 200_000;

/// A running server; it stops when dropped.
pub(super) struct Counting {
    pub at: SocketAddr,
    packets: Arc<AtomicU64>,
    _task: AbortOnDropHandle<()>,
}

impl Counting {
    pub async fn start(world: &ZoneStore, role: Who) -> io::Result<Self> {
        let socket = UdpSocket::bind((IpAddr::V4(Ipv4Addr::LOCALHOST), 0)).await?;
        let (at, packets) = (socket.local_addr()?, Arc::new(AtomicU64::new(0)));
        let task = tokio::spawn(serve(socket, world.clone(), role, Arc::clone(&packets)));
        Ok(Counting { at, packets, _task: AbortOnDropHandle::new(task) })
    }

    /// Packets received so far.
    pub fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }
}

async fn serve(socket: UdpSocket, world: ZoneStore, role: Who, packets: Arc<AtomicU64>) {
    let mut kept: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    let mut octets = vec![0; 4096];
    loop {
        // An error here is about a packet sent before; the next one may be fine.
        let Ok((length, from)) = socket.recv_from(&mut octets).await else { continue };
        packets.fetch_add(1, Ordering::Relaxed);
        let Some((id, question)) = octets[..length].split_at_checked(2) else { continue };
        if !kept.contains_key(question) {
            let Some(answer) = answer(&world, &role, &octets[..length]) else { continue };
            if kept.len() < KEPT {
                kept.insert(question.to_vec(), answer);
            } else {
                let _ = socket.send_to(&answer, from).await;
                continue;
            }
        }
        if let Some(answer) = kept.get_mut(question) {
            answer[..2].copy_from_slice(id);
            let _ = socket.send_to(answer, from).await;
        }
    }
}

fn answer(world: &ZoneStore, role: &Who, octets: &[u8]) -> Option<Vec<u8>> {
    let asked = wire::asked(octets)?;
    match world.answer(role, &asked.name, asked.kind) {
        Reply::Answer(answer) => wire::reply(&asked, &answer, matches!(role, Who::Resolver(_)), asked.udp_limit()).ok(),
        Reply::Silence | Reply::Truncated => None,
    }
}
