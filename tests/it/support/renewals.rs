//! Live names, days that pass over them, and what is counted of their certificates: what tests of renewals share.

use std::collections::BTreeSet;
use std::time::Duration;

use nameplate::acme::{AcmeError, Call, Kind, ProblemDoc};
use nameplate::model::id::DomainId;
use nameplate::model::moment::Moment;
use nameplate::store::sql;

use super::rig::Rig;

pub const HOUR: Duration = Duration::from_secs(3600);
pub const DAY: Duration = Duration::from_secs(86_400);
pub const NAME: &str = "support.acme.test";

pub async fn live_as(rig: &Rig, name: &str) -> DomainId {
    let tenant = rig.tenant("acme").await;
    let id = rig.claim(&tenant, name).await;
    rig.publish(&id, name).await;
    rig.until_active(&id, HOUR).await;
    id
}

pub async fn live(rig: &Rig) -> DomainId {
    live_as(rig, NAME).await
}

pub async fn number(rig: &Rig, id: &DomainId, text: &'static str) -> i64 {
    rig.count(sql(text).bind(id.as_str())).await
}

pub async fn certificates(rig: &Rig, id: &DomainId) -> i64 {
    number(rig, id, "SELECT count(*) AS n FROM certificates WHERE domain_id = $1").await
}

pub async fn renew_at(rig: &Rig, id: &DomainId) -> Moment {
    Moment::from_micros(number(rig, id, "SELECT renew_at AS n FROM renewals WHERE domain_id = $1").await)
}

/// The account's row of the ledger.
pub async fn spent(rig: &Rig) -> i64 {
    rig.count(sql("SELECT COALESCE(max(tat), 0) AS n FROM ledger WHERE key = 'account'")).await
}

pub fn refusal(status: u16, kind: &str) -> AcmeError {
    AcmeError {
        call: Call::NewOrder,
        kind: Kind::Refused,
        problem: ProblemDoc::new(serde_json::json!({
            "type": format!("urn:ietf:params:acme:error:{kind}"), "detail": "no", "status": status,
        })),
        status: Some(status),
        retry_after: None,
        acted_on: false,
        cause: None,
    }
}

pub fn down() -> AcmeError {
    AcmeError {
        call: Call::NewOrder,
        kind: Kind::Unreached,
        problem: None,
        status: None,
        retry_after: None,
        acted_on: false,
        cause: None,
    }
}

/// Days pass; at each the name is served with a certificate that is valid.
pub async fn days(rig: &Rig, name: &str, days: u32) {
    for day in 0..days {
        rig.pass_quickly(DAY).await;
        let serial = rig.serial_at_edge(name).unwrap_or_else(|| panic!("{name} is not served on day {day}"));
        let ends = sql("SELECT not_after AS n FROM certificates WHERE serial = $1").bind(serial.as_str());
        let ends = Moment::from_micros(rig.count(ends).await);
        assert!(ends > rig.env.now(), "{name} is served with a certificate that ended {ends}, on day {day}");
        rig.check_invariants().await;
    }
}

/// So many live names of one tenant, each certified.
pub async fn live_names(rig: &Rig, many: usize) -> Vec<(DomainId, String)> {
    let tenant = rig.tenant("acme").await;
    let mut ids = Vec::new();
    for n in 0..many {
        let name = format!("n{n}.acme.test");
        let id = rig.claim(&tenant, &name).await;
        rig.publish(&id, &name).await;
        ids.push((id, name));
    }
    for (id, _) in &ids {
        rig.until_active(id, 80 * HOUR).await;
    }
    ids
}

/// What is served for each of the names.
pub fn serials(rig: &Rig, names: &[(DomainId, String)]) -> BTreeSet<String> {
    names.iter().map(|(_, name)| rig.serial_at_edge(name).unwrap_or_else(|| panic!("{name} is not served"))).collect()
}

/// The ownership record and the way to us are taken away.
pub async fn untie(rig: &Rig, id: &DomainId, name: &str) {
    rig.unpublish_txt(id, name).await;
    let target = rig.domain_text(id, "target").await.unwrap();
    rig.zones.remove(&format!("{name}. 60 IN CNAME {target}.")).unwrap();
}

/// Open orders of all names.
pub async fn open_orders(rig: &Rig) -> i64 {
    rig.count(sql("SELECT count(*) AS n FROM orders WHERE state NOT IN ('issued', 'failed', 'lost')")).await
}
