//! Samples of the page: one a situation, and one with values that want to be markup.

use std::time::Duration;

use serde_json::json;

use crate::app::show::{
    AttemptView, CertificateView, CheckView, DomainView, EventView, OrderView, ProbeView, RolloutView, TenantRef,
};
use crate::model::claim::Claim;
use crate::model::domain::RoutingMode;
use crate::model::evidence::{Actor, Check, DnsHost, Record, View};
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, TenantId};
use crate::model::moment::Moment;
use crate::model::reason::Reason;
use crate::model::records::{ApexRoute, records};

pub(super) const NOW: Moment = Moment::from_secs(1_796_000_000);

pub(super) const HOSTILE: &str = "\"><script>alert('x')</script><img src=x onerror=alert(1)>";

const VALUE: &str = "nameplate-verify=8c1f6a3b9d2e47508c1f6a3b9d2e4750";

fn ago(seconds: u64) -> Moment {
    NOW - Duration::from_secs(seconds)
}

fn check(check: Check, reason: Reason, expected: &str, observed: &[&str], advice: &str) -> CheckView {
    CheckView {
        check,
        verdict: reason.verdict(),
        code: reason.code().into(),
        sentence: reason.sentence().into(),
        expected: expected.into(),
        observed: observed.iter().map(|line| (*line).to_owned()).collect(),
        seen_by: vec!["ns1.dns.example".into(), "ns2.dns.example".into()],
        views: vec![],
        old_until: None,
        who_acts: reason.acts(),
        advice: advice.into(),
        record_to_publish: vec![],
        dns_host: None,
        looked_at: ago(9),
        next_look_at: Some(NOW + Duration::from_secs(6)),
        deadline: Some(NOW + Duration::from_secs(30 * 86_400)),
        consequence: "Until this passes nothing is served.".into(),
    }
}

fn hosted_at(provider: &str, zone: &str) -> DnsHost {
    DnsHost { provider: provider.into(), zone: zone.into(), steps: vec![] }
}

fn view_of(observer: &str, said: &str, ttl: Option<u32>, as_expected: bool) -> View {
    View { observer: observer.into(), said: said.into(), ttl, as_expected }
}

fn event(seq: i64, kind: &str, cause: &str, seconds: u64, detail: serde_json::Value) -> EventView {
    EventView {
        id: format!("evt_{seq}"),
        position: Some(seq),
        tenant_id: None,
        domain_id: None,
        seq: Some(seq),
        kind: kind.into(),
        actor: "nameplate".into(),
        cause: cause.into(),
        at: ago(seconds),
        detail,
    }
}

fn base(hostname: &str, claim: Claim) -> DomainView {
    let hostname = Hostname::trusted(hostname);
    let apex = ApexRoute { target: None, addresses: vec!["192.0.2.80".parse().unwrap(), "2001:db8::80".parse().unwrap()] };
    DomainView {
        held: None,
        id: DomainId::mint(ago(600), [7; 10]),
        tenant: TenantRef { id: TenantId::mint(ago(9000), [3; 10]), slug: "acme".into() },
        hostname_display: hostname.display(),
        records: records(&hostname, VALUE, RoutingMode::PerTenant, "acme.app.example", &apex),
        hostname,
        claim,
        sentence: "Visitors are not served yet.".into(),
        who_acts: Actor::Nobody,
        serving: false,
        active: false,
        checks: vec![],
        order: None,
        certificate: None,
        rollout: RolloutView::default(),
        renewal: None,
        public_probe: None,
        partner: None,
        redirect_to: None,
        redirecting: false,
        attempt: AttemptView {
            value: VALUE.into(),
            opened_at: ago(600),
            deadline: NOW + Duration::from_secs(30 * 86_400),
            proven_at: None,
        },
        due_at: Some(NOW + Duration::from_secs(6)),
        undo_until: (claim == Claim::Releasing).then_some(NOW + Duration::from_secs(6 * 86_400)),
        version: 1,
        created_at: ago(600),
        events: vec![event(1, "claimed", "asked for", 600, json!({ "hostname": "support.acme.example" }))],
    }
}

fn awaiting() -> DomainView {
    let mut view = base("support.acme.example", Claim::AwaitingDns);
    view.sentence = "Visitors are not served yet, because the way to us needs a correction. The alias chain ends at a name that is not ours. Your move: see below what to change.".into();
    view.who_acts = Actor::Tenant;
    view.checks = vec![
        check(
            Check::Ownership,
            Reason::TxtOk,
            &format!("TXT _nameplate-challenge.support.acme.example = {VALUE}"),
            &[&format!("ns1.dns.example: TXT _nameplate-challenge.support.acme.example = \"{VALUE}\"")],
            "",
        ),
        check(
            Check::Routing,
            Reason::CnamePointsElsewhere,
            "CNAME support.acme.example → acme.app.example",
            &["resolver own-a: support.acme.example → shops.elsewhere.example"],
            "At the DNS of acme.example, change the CNAME record of host “support” from shops.elsewhere.example to acme.app.example.",
        ),
        check(Check::Caa, Reason::CaaAbsent, "no CAA record, or one that permits our certificate authority", &[], ""),
    ];
    view.checks[1].dns_host = Some(hosted_at("Cloudflare", "acme.example"));
    view.checks[1].views = vec![
        view_of("ns1.dns.example", "CNAME acme.app.example", Some(300), true),
        view_of("resolver own-a", "CNAME shops.elsewhere.example", Some(3600), false),
        view_of("resolver own-b", "no answer", None, false),
    ];
    view.checks[1].old_until = Some(NOW + Duration::from_secs(3600));
    view.events.insert(
        0,
        event(
            2,
            "looked",
            "asked for by the tenant",
            9,
            json!({ "ownership": "txt_ok", "routing": "cname_points_elsewhere" }),
        ),
    );
    view
}

fn live() -> DomainView {
    let mut view = base("xn--bcher-kva.acme.example", Claim::Live);
    view.sentence = "Visitors are served over HTTPS.".into();
    (view.serving, view.active) = (true, true);
    view.certificate = Some(CertificateView {
        serial: "04a7c3f1e2b95d6088".into(),
        issuer: Some("letsencrypt".into()),
        not_before: ago(3600),
        not_after: NOW + Duration::from_secs(89 * 86_400),
        days_left: 89,
        percent_left: 99,
    });
    view.order = Some(OrderView {
        purpose: "first".into(),
        state: "issued".into(),
        lane: "single".into(),
        state_since: ago(30),
        not_before: Some(ago(60)),
        problem: None,
    });
    view.rollout = RolloutView { counted: 2, behind: vec![] };
    view.public_probe = Some(ProbeView { at: ago(20), ok: true, seen: vec!["192.0.2.80: 04a7c3f1e2b95d6088".into()] });
    view.events.insert(0, event(2, "live", "the certificate was stored", 30, json!({ "serial": "04a7c3f1e2b95d6088" })));
    view
}

fn queued() -> DomainView {
    let mut view = base("acme.example", Claim::Queued);
    view.sentence = "Visitors are not served yet: the certificate waits for its turn in the order budget.".into();
    view.order = Some(OrderView {
        purpose: "first".into(),
        state: "waiting".into(),
        lane: "bulk".into(),
        state_since: ago(30),
        not_before: Some(NOW + Duration::from_secs(600)),
        problem: Some(
            json!({ "type": "urn:ietf:params:acme:error:rateLimited", "detail": "too many orders", "status": 429 }),
        ),
    });
    view
}

fn hostile() -> DomainView {
    let mut view = awaiting();
    view.hostname_display = HOSTILE.into();
    view.tenant.slug = HOSTILE.into();
    view.sentence = HOSTILE.into();
    view.records.push(Record {
        name: HOSTILE.into(),
        host: HOSTILE.into(),
        kind: HOSTILE.into(),
        value: HOSTILE.into(),
        keep: true,
    });
    view.checks.push(check(Check::Caa, Reason::CaaMalformed, HOSTILE, &[HOSTILE], HOSTILE));
    view.checks[1].views.push(view_of(HOSTILE, HOSTILE, Some(u32::MAX), false));
    for check in &mut view.checks {
        check.dns_host = Some(hosted_at(HOSTILE, HOSTILE));
    }
    view.order = Some(OrderView {
        purpose: HOSTILE.into(),
        state: HOSTILE.into(),
        lane: HOSTILE.into(),
        state_since: NOW,
        not_before: None,
        problem: Some(json!({ HOSTILE: HOSTILE })),
    });
    view.public_probe = Some(ProbeView { at: NOW, ok: false, seen: vec![HOSTILE.into()] });
    view.rollout = RolloutView { counted: 1, behind: vec![HOSTILE.into(), HOSTILE.into()] };
    view.events.push(event(3, HOSTILE, HOSTILE, 5, json!({ HOSTILE: [HOSTILE] })));
    view
}

pub(super) fn all() -> Vec<(&'static str, DomainView)> {
    let closed = |claim| {
        let mut view = base("shop.acme.example", claim);
        view.due_at = None;
        view
    };
    vec![
        ("fresh", base("support.acme.example", Claim::AwaitingDns)),
        ("awaiting", awaiting()),
        ("queued", queued()),
        ("live", live()),
        ("releasing", closed(Claim::Releasing)),
        ("released", closed(Claim::Released)),
        ("expired", closed(Claim::Expired)),
        ("withdrawn", closed(Claim::Withdrawn)),
        ("hostile", hostile()),
    ]
}
