//! A UDP socket and a TCP listener on the same port.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpListener, UdpSocket};

/// How often a free pair of ports is looked for.
const TRIES: usize = 50;

/// Where one role of the server listens.
#[derive(Debug)]
pub struct Sockets {
    /// For packets.
    pub udp: UdpSocket,
    /// For streams.
    pub tcp: TcpListener,
}

impl Sockets {
    /// Binds both on one port; with port 0, on one that is free for both.
    pub async fn bind(address: IpAddr, port: u16) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::AddrInUse, "no port is free for UDP and TCP alike");
        for _ in 0..TRIES {
            let tcp = TcpListener::bind((address, port)).await?;
            match UdpSocket::bind((address, tcp.local_addr()?.port())).await {
                Ok(udp) => return Ok(Sockets { udp, tcp }),
                Err(e) if port != 0 => return Err(e),
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    /// Where they listen.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}
