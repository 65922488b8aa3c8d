//! `reach`: the requests that test a name from outside.

use super::reader::Reader;

/// The section.
#[derive(Clone, Debug)]
pub struct ReachConfig {
    /// Port of plain HTTP at the public name.
    pub http_port: u16,
    /// Port of HTTPS at the public name.
    pub https_port: u16,
    /// Whether names are tried before anything is ordered for them.
    pub preflight: bool,
    /// Whether a public name may resolve to this machine.
    pub allow_loopback: bool,
}

impl ReachConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        ReachConfig {
            http_port: r.value("reach.http_port", 80, "Port at which public names are tried in plain HTTP."),
            https_port: r.value("reach.https_port", 443, "Port at which public names are tried in HTTPS."),
            preflight: r.value(
                "reach.preflight",
                true,
                "Before a certificate is ordered, a request through the public name must reach an edge. Switch it off only where \
                 the control plane cannot reach the edges by their public addresses.",
            ),
            allow_loopback: r.value(
                "reach.allow_loopback",
                false,
                "Lets outgoing requests go to loopback and private addresses. For trials on one machine only.",
            ),
        }
    }
}
