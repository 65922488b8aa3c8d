//! A visitor of a tenant's site, who trusts the CA's root and nothing else.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{Certificate, Client};

use super::origin::Asked;

/// How long a visit may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A visitor.
pub struct Visitor {
    roots_pem: String,
    edge: SocketAddr,
}

impl Visitor {
    /// Of the edge whose port 443 is there.
    pub fn new(roots_pem: String, edge: SocketAddr) -> Visitor {
        Visitor { roots_pem, edge }
    }

    /// Where the site is.
    pub fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/", self.edge.port())
    }

    /// What is needed to visit one host, again and again.
    pub fn of(&self, host: &str) -> Result<Visit, reqwest::Error> {
        let roots = Certificate::from_pem_bundle(self.roots_pem.as_bytes())?;
        let client = Client::builder()
            .tls_certs_only(roots)
            .no_proxy()
            .timeout(PATIENCE)
            .pool_max_idle_per_host(0)
            .resolve(host, self.edge)
            .build()?;
        Ok(Visit { client, url: self.url(host) })
    }
}

/// Visits to one host.
pub struct Visit {
    client: Client,
    url: String,
}

impl Visit {
    /// One visit, on a connection of its own: what the origin was asked.
    pub async fn pay(&self) -> Result<Asked, reqwest::Error> {
        let request = self.client.get(&self.url).header("accept", "application/json");
        request.send().await?.error_for_status()?.json().await
    }
}
