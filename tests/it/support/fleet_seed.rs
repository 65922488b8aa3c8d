//! A fleet of any size, written in bulk: tenants with domains in every state, their evidence, orders, certificates and events
//! in a realistic mix.

use nameplate::model::claim::Claim;
use nameplate::model::evidence::{Check, Evidence, Finding};
use nameplate::model::moment::Moment;
use nameplate::model::reason::Reason;
use nameplate::model::standing::Standing;
use nameplate::store::{Stmt, Store, sql};

const DAY: i64 = 86_400_000_000;

/// A part of the fleet: of every hundred domains those from `from` to `to`.
pub struct Part {
    pub from: i64,
    pub to: i64,
    pub claim: Claim,
    pub standing: Standing,
    evidence: [Reason; 3],
}

const RIGHT: [Reason; 3] = [Reason::TxtOk, Reason::CnameOk, Reason::CaaAbsent];

/// The mix.
pub fn parts() -> Vec<Part> {
    let part = |from, to, claim, standing, evidence| Part { from, to, claim, standing, evidence };
    let found =
        |from, to, claim, evidence: [Reason; 3], by: usize| part(from, to, claim, Standing::Found(evidence[by]), evidence);
    let away = [Reason::TxtOk, Reason::CnamePointsElsewhere, Reason::CaaAbsent];
    vec![
        part(0, 64, Claim::Live, Standing::Serving, RIGHT),
        part(65, 65, Claim::Live, Standing::RollingOut, RIGHT),
        found(66, 68, Claim::Live, away, 1),
        found(69, 77, Claim::AwaitingDns, [Reason::TxtMissing, Reason::CnameMissing, Reason::CaaAbsent], 0),
        found(78, 81, Claim::AwaitingDns, away, 1),
        found(82, 82, Claim::AwaitingDns, [Reason::DnsLookupFailed, Reason::CnameOk, Reason::CaaAbsent], 0),
        part(83, 89, Claim::Queued, Standing::OrderWaiting, RIGHT),
        part(90, 90, Claim::Queued, Standing::OrderRetried, RIGHT),
        found(91, 91, Claim::Queued, [Reason::TxtOk, Reason::CnameOk, Reason::CaaExcludesCa], 2),
        part(92, 93, Claim::Expired, Standing::Expired, RIGHT),
        part(94, 96, Claim::Withdrawn, Standing::Withdrawn, RIGHT),
        part(97, 98, Claim::Released, Standing::Released, RIGHT),
        part(99, 99, Claim::Releasing, Standing::Releasing, RIGHT),
    ]
}

fn evidence(part: &Part, now: Moment) -> String {
    let checks = [Check::Ownership, Check::Routing, Check::Caa];
    let finding = |(check, reason): (Check, Reason)| Evidence {
        finding: Finding {
            check,
            reason,
            expected: "CNAME support.customer.example → customer.app.example, or an ALIAS at the apex".to_owned(),
            observed: vec!["ns1.dns.example: support.customer.example → shops.elsewhere.example".to_owned(); 2],
            seen_by: vec!["ns1.dns.example".to_owned(), "ns2.dns.example".to_owned()],
            views: vec![],
            advice: "At the DNS of customer.example, change the CNAME record of host “support”.".to_owned(),
            found_at: None,
            found_via: None,
            record_to_publish: vec![],
            dns_host: None,
        },
        looked_at: now,
    };
    let all: Vec<Evidence> = checks.into_iter().zip(part.evidence).map(finding).collect();
    serde_json::to_string(&all).unwrap()
}

/// A text with `PAD(x)` in place of `x` padded to 32 digits, in the words of the database.
fn spoken(postgres: bool, text: &str) -> &'static str {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("PAD(") {
        let (inner, behind) = after.split_once(')').unwrap();
        out.push_str(before);
        out.push_str(&match postgres {
            true => format!("lpad(({inner})::text, 32, '0')"),
            false => format!("printf('%032d', {inner})"),
        });
        rest = behind;
    }
    out.push_str(rest);
    Box::leak(out.into_boxed_str())
}

/// Writes `domains` domains of `tenants` tenants in this mix; each in turn belongs to the next tenant. `issuer` is the id of the
/// issuer whose orders and certificates they are.
pub async fn fill(store: &Store, mix: &[Part], (domains, tenants): (i64, i64), issuer: &str, now: Moment) {
    write(store, mix, (domains, tenants), issuer, now).await;
    analyze(store).await;
}

async fn write(store: &Store, mix: &[Part], (domains, tenants): (i64, i64), issuer: &str, now: Moment) {
    let postgres = store.postgres_pool().is_some();
    let say = |text: &str| -> Stmt { sql(spoken(postgres, text)) };
    let run = async |stmt: Stmt| {
        store.execute(stmt).await.unwrap();
    };
    let seq = "WITH RECURSIVE seq(i) AS (SELECT $1 UNION ALL SELECT i + 1 FROM seq WHERE i < $2 - 1) ";
    let seq = if postgres { seq.replace("$1", "$1::bigint").replace("$2", "$2::bigint") } else { seq.to_owned() };
    run(say(&format!(
        "{seq} INSERT INTO tenants (id, slug, name, region, stamp, shard, tier, status, version, created_at) \
         SELECT 'ten_' || PAD(i), 'tenant-' || i, 'Tenant number ' || i, 'default', 'default', 0, 'standard', 'active', 1, $3 \
         FROM seq"
    ))
    .bind(0)
    .bind(tenants)
    .bind(now))
    .await;
    for part in mix {
        run(say(&format!(
            "{seq} INSERT INTO domains (id, tenant_id, hostname, claim, claim_since, routing_mode, target, attempt_id, evidence, \
               looked_at, pace_from, nudged, tie, lost_for_us, due_at, lease_until, generation, settled, failures, event_seq, \
               certificate_id, active_since, created_at, standing, acts, standing_since, certificate_until) \
             SELECT 'dom_' || PAD(i), 'ten_' || PAD(i % $3), 'support' || i || '.customer' || i || '.test', $4, \
               $5 - (i % 5000) * 1000000000, 'per_tenant', 'tenant-' || (i % $3) || '.app.example', 'att_' || PAD(i), $6, \
               $5, $5, 0, 'held', 0, $7, 0, 7, 7, $8, 6, \
               CASE WHEN $9 = 1 THEN 'crt_' || PAD(i) END, CASE WHEN $9 = 1 THEN $5 END, $5 - (i % 9000) * 1000000000, \
               $10, $11, $5 - (i % 7000) * 1000000000, CASE WHEN $9 = 1 THEN $5 + (i % 88) * {DAY} + i END \
             FROM seq WHERE i % 100 BETWEEN $12 AND $13"
        ))
        .bind(0)
        .bind(domains)
        .bind(tenants)
        .bind(part.claim.as_str())
        .bind(now)
        .bind(evidence(part, now))
        .bind(Moment::NEVER)
        .bind(i64::from(part.standing == Standing::OrderRetried))
        .bind(i64::from(part.claim == Claim::Live))
        .bind(part.standing.code())
        .bind(part.standing.acts().as_str())
        .bind(part.from)
        .bind(part.to))
        .await;
    }
    run(say("INSERT INTO attempts (id, domain_id, value, opened_at, deadline, proven_at) \
         SELECT attempt_id, id, 'nameplate-verify=' || substr(id, 5), created_at, created_at + 2592000000000, \
           CASE WHEN claim IN ('live', 'queued') THEN created_at END FROM domains"))
    .await;
    run(say("INSERT INTO domain_words (word, domain_id) SELECT hostname, id FROM domains")).await;
    run(say(
        "INSERT INTO domain_words (word, domain_id) SELECT substr(hostname, length('support' || CAST(substr(id, 5) AS BIGINT)) + 2), \
           id FROM domains",
    ))
    .await;
    run(say("INSERT INTO holdings (hostname, domain_id, tenant_id, state, term, since, looks_off) \
         SELECT hostname, id, tenant_id, 'held', 1, claim_since, 0 FROM domains WHERE claim IN ('live', 'queued')"))
    .await;
    run(say(
        "INSERT INTO orders (id, domain_id, tenant_id, purpose, lane, issuer_id, state, state_since, not_before, created_at) \
         SELECT 'ord_' || substr(id, 5), id, tenant_id, 'first', CASE WHEN CAST(substr(id, 5) AS BIGINT) % 3 = 0 THEN 'bulk' ELSE 'single' END, \
           $1, CASE WHEN claim = 'live' THEN 'issued' ELSE 'waiting' END, claim_since, \
           CASE WHEN standing = 'order_waiting' OR claim = 'live' THEN claim_since ELSE 9223372036854775807 END, claim_since \
         FROM domains WHERE claim IN ('live', 'queued')",
    )
    .bind(issuer))
    .await;
    run(say(
        "INSERT INTO certificates (id, domain_id, tenant_id, source, issuer_id, order_id, serial, fingerprint, chain, not_before, \
           not_after, stored_at) \
         SELECT certificate_id, id, tenant_id, 'order', $1, 'ord_' || substr(id, 5), substr(id, 5), substr(id, 5), $2, $3, \
           certificate_until, claim_since FROM domains WHERE certificate_id IS NOT NULL",
    )
    .bind(issuer)
    .bind("-----BEGIN CERTIFICATE-----\nMIIB".repeat(30))
    .bind(now))
    .await;
    run(say(
        "INSERT INTO outbox (id, seq, kind, subject, version, at) \
         SELECT 'evt_c' || substr(id, 6), CAST(substr(id, 5) AS BIGINT) + 1, 'certificate', id, 1, stored_at FROM certificates",
    ))
    .await;
    run(say(
        "INSERT INTO grants (id, issuer_id, order_id, granted_at, expires_at, state) \
         SELECT 'gra_' || substr(id, 5), issuer_id, id, state_since, state_since, 'used' FROM orders WHERE state = 'issued'",
    ))
    .await;
    // What was issued within the last days still counts: of a registered domain for hours, of a name for a day and more.
    run(say("INSERT INTO ledger (issuer_id, limit_name, key, tat, refusals) \
         SELECT $1, 'certificates_per_name', hostname, $2 + CAST(substr(id, 5) AS BIGINT) * 1000000 + 1, 0 \
         FROM domains WHERE claim = 'live' AND CAST(substr(id, 5) AS BIGINT) % 10 = 0")
    .bind(issuer)
    .bind(now))
    .await;
    run(say("INSERT INTO ledger (issuer_id, limit_name, key, tat, refusals) \
         SELECT $1, 'certificates_per_domain', substr(hostname, length('support' || CAST(substr(id, 5) AS BIGINT)) + 2), \
           $2 + CAST(substr(id, 5) AS BIGINT) * 1000000 + 1, 0 \
         FROM domains WHERE claim = 'live' AND CAST(substr(id, 5) AS BIGINT) % 40 = 0")
    .bind(issuer)
    .bind(now))
    .await;
    run(say("INSERT INTO spends (grant_id, issuer_id, limit_name, key, interval_us, opened_at, deadline, counts) \
         SELECT 'gra_' || substr(id, 5), $1, 'certificates_per_name', hostname, 120960000000, $2, $3, 'certificate' \
         FROM domains WHERE claim = 'live' AND CAST(substr(id, 5) AS BIGINT) % 200 = 0")
    .bind(issuer)
    .bind(now)
    .bind(Moment::NEVER))
    .await;
    let kinds = ["claimed", "evidence_changed", "proven", "order_placed", "certificate_stored", "active"];
    for (kind, seq) in kinds.into_iter().zip(1_i64..) {
        run(say(
            "INSERT INTO events (id, position, tenant_id, domain_id, domain_seq, kind, actor, cause, detail, at) \
             SELECT 'evt_' || $1 || substr(id, 6), CAST(substr(id, 5) AS BIGINT) * 6 + $2, tenant_id, id, $2, $3, 'nameplate', \
               'what happened, in one plain sentence', '{\"hostname\":\"support.customer.example\"}', claim_since FROM domains",
        )
        .bind(seq.to_string())
        .bind(seq)
        .bind(kind))
        .await;
    }
}

/// Lets the database look at what it has.
pub async fn analyze(store: &Store) {
    if let Some(pool) = store.postgres_pool() {
        sqlx::query("VACUUM ANALYZE").execute(pool).await.unwrap();
    } else if let Some(pool) = store.sqlite_pool() {
        sqlx::query("ANALYZE").execute(pool).await.unwrap();
    }
}
