//! `metrics`: where a process tells how it is doing.

use std::net::SocketAddr;

use super::reader::Reader;

/// The section.
#[derive(Clone, Debug)]
pub struct MetricsConfig {
    /// Where `/healthz`, `/readyz` and `/metrics` are answered.
    pub listen: Option<SocketAddr>,
}

impl MetricsConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        MetricsConfig {
            listen: r.optional(
                "metrics.listen",
                "Address and port of `/healthz`, `/readyz` and `/metrics` of this process, for those who watch it and nobody \
                 else; without it there are none.",
            ),
        }
    }
}
