//! `portal`: links, sessions, and where the pages may be shown.

use std::time::Duration;

use super::reader::Reader;
use super::return_url::ReturnUrl;
use super::setting::Origin;

/// The section.
#[derive(Clone, Debug)]
pub struct PortalConfig {
    /// How long a portal link is good.
    pub link_lifetime: Duration,
    /// How long a hand-off link is good when nothing is said.
    pub hand_off_lifetime: Duration,
    /// A session ends when it was not used for so long.
    pub session_idle: Duration,
    /// A session ends after so long in any case.
    pub session_lifetime: Duration,
    /// Where a portal link may lead back to.
    pub return_urls: Vec<ReturnUrl>,
    /// Whose pages may frame the portal.
    pub frame_ancestors: Vec<Origin>,
    /// How many pages one process keeps live.
    pub live_connections: u32,
}

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

impl PortalConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let config = PortalConfig {
            link_lifetime: r.value(
                "portal.link_lifetime",
                Duration::from_secs(900),
                "How long a portal link is good; it works once.",
            ),
            hand_off_lifetime: r.value(
                "portal.hand_off_lifetime",
                7 * DAY,
                "How long a hand-off link is good when whoever makes it says nothing.",
            ),
            session_idle: r.value("portal.session_idle", HOUR, "A session of the pages ends when it was not used for so long."),
            session_lifetime: r.value("portal.session_lifetime", 12 * HOUR, "A session of the pages ends after so long in any case."),
            return_urls: r.value(
                "portal.return_urls",
                vec![],
                "Where a portal link may lead back to: URLs whose origin must be the same and whose path must be the beginning.",
            ),
            frame_ancestors: r.value(
                "portal.frame_ancestors",
                vec![],
                "Origins whose pages may frame the portal; with none, nobody may. With any, the session's cookie is sent inside frames.",
            ),
            live_connections: r.value(
                "portal.live_connections",
                512,
                "How many open pages and waiting readers of events one process tells of changes at once; the others look by themselves.",
            ),
        };
        for (key, time, most) in [
            ("portal.link_lifetime", config.link_lifetime, DAY),
            ("portal.hand_off_lifetime", config.hand_off_lifetime, 90 * DAY),
            ("portal.session_idle", config.session_idle, 30 * DAY),
            ("portal.session_lifetime", config.session_lifetime, 30 * DAY),
        ] {
            if time < Duration::from_secs(60) || time > most {
                let days = most.as_secs() / 86_400;
                r.problem(key, "", format!("is {} s; it must be from one minute to {days} d", time.as_secs()));
            }
        }
        config
    }
}
