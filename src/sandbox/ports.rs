//! The sandbox's listeners: at friendly ports where those are free, else wherever there is room.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;

/// Every TCP listener of a sandbox, bound.
pub struct Ports {
    /// API and pages.
    pub web: TcpListener,
    /// The feed.
    pub feed: TcpListener,
    /// The edge's port 80.
    pub plain: TcpListener,
    /// The edge's port 443.
    pub tls: TcpListener,
    /// The pretend DNS provider's page.
    pub provider: TcpListener,
    /// The application behind the edge.
    pub origin: TcpListener,
    /// The test CA.
    pub ca: TcpListener,
    /// The mailbox.
    pub mail: TcpListener,
}

impl Ports {
    /// Ports that a person remembers, as far as they are free.
    pub async fn friendly() -> io::Result<Ports> {
        Ok(Ports {
            web: near(4000).await?,
            feed: near(4001).await?,
            plain: near(4080).await?,
            tls: near(4443).await?,
            provider: near(4053).await?,
            origin: near(4002).await?,
            ca: near(4014).await?,
            mail: near(4025).await?,
        })
    }

    /// Any free ports: many sandboxes may run at once.
    pub async fn free() -> io::Result<Ports> {
        Ok(Ports {
            web: at(0).await?,
            feed: at(0).await?,
            plain: at(0).await?,
            tls: at(0).await?,
            provider: at(0).await?,
            origin: at(0).await?,
            ca: at(0).await?,
            mail: at(0).await?,
        })
    }
}

async fn at(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await
}

async fn near(port: u16) -> io::Result<TcpListener> {
    match at(port).await {
        Ok(listener) => Ok(listener),
        Err(_) => at(0).await,
    }
}
