//! What must hold of the rig's store at any moment.

use nameplate::model::claim::Claim;
use nameplate::model::standing;
use nameplate::store::sql;

use super::rig::Rig;

impl Rig {
    /// What must hold at any moment, whatever was cut (DESIGN's list of what is always true).
    pub async fn check_invariants(&self) {
        let none = |what: &'static str, n: i64| assert_eq!(n, 0, "{what}");
        none(
            "a holding names a domain that is not its holder",
            self.count(sql(
                "SELECT count(*) AS n FROM holdings h JOIN domains d ON d.id = h.domain_id WHERE h.state = 'held' \
                 AND (d.hostname <> h.hostname OR d.claim NOT IN ('queued', 'live'))",
            ))
            .await,
        );
        none(
            "a queued or live claim without the holding",
            self.count(
                sql("SELECT count(*) AS n FROM domains d WHERE d.claim IN ('queued', 'live') AND NOT EXISTS \
                 (SELECT 1 FROM holdings h WHERE h.hostname = d.hostname AND h.domain_id = d.id AND h.state = 'held') \
                 AND NOT (d.claim = 'queued' AND (d.due_at <= $1 OR EXISTS \
                   (SELECT 1 FROM holdings h WHERE h.hostname = d.hostname AND h.successor_id = d.id)))")
                .bind(self.env.now()),
            )
            .await,
        );
        none(
            "a claim that is next and neither waits nor is queued, or follows itself",
            self.count(sql("SELECT count(*) AS n FROM holdings h LEFT JOIN domains d ON d.id = h.successor_id \
                 WHERE h.successor_id IS NOT NULL AND (d.id IS NULL OR d.hostname <> h.hostname OR h.state = 'free' \
                   OR h.domain_id = h.successor_id OR d.claim NOT IN ('awaiting_dns', 'queued'))"))
                .await,
        );
        none(
            "a link or a redirect between two tenants",
            self.count(sql("SELECT count(*) AS n FROM routes r JOIN domains d ON d.id = r.domain_id LEFT JOIN domains p \
                 ON p.id = d.linked_domain_id AND p.linked_domain_id = d.id AND p.tenant_id = d.tenant_id \
                 WHERE r.redirect_to IS NOT NULL AND (p.id IS NULL OR p.hostname <> r.redirect_to OR d.redirects = 0)"))
                .await,
        );
        none(
            "a holding without a proven attempt",
            self.count(sql("SELECT count(*) AS n FROM holdings h JOIN domains d ON d.id = h.domain_id \
                 JOIN attempts a ON a.id = d.attempt_id WHERE h.state = 'held' AND a.proven_at IS NULL"))
                .await,
        );
        none(
            "a route that serves a name without its holder",
            self.count(sql("SELECT count(*) AS n FROM routes r WHERE r.action = 'serve' AND r.domain_id IS NOT NULL AND NOT EXISTS \
                 (SELECT 1 FROM holdings h WHERE h.hostname = r.hostname AND h.domain_id = r.domain_id AND h.state = 'held')"))
                .await,
        );
        none(
            "a gap in a domain's events",
            self.count(sql(
                "SELECT count(*) AS n FROM (SELECT domain_id, count(*) AS many, max(domain_seq) AS last FROM events \
                 WHERE domain_id IS NOT NULL GROUP BY domain_id) e WHERE e.many <> e.last",
            ))
            .await,
        );
        none(
            "an open grant or spend of an order that is not waiting for its call",
            self.count(sql(
                "SELECT count(*) AS n FROM spends p JOIN grants g ON g.id = p.grant_id WHERE g.state = 'returned'",
            ))
            .await,
        );
        none(
            "a spend that nobody will ever settle: its order is over",
            self.count(sql("SELECT count(*) AS n FROM spends p JOIN grants g ON g.id = p.grant_id \
                 JOIN orders o ON o.id = g.order_id WHERE p.counts <> 'order' AND o.state IN ('issued', 'failed', 'lost')"))
                .await,
        );
        none(
            "an open grant without one spend for each limit",
            self.count(sql("SELECT count(*) AS n FROM grants g WHERE g.state = 'open' AND \
                 (SELECT count(*) FROM spends p WHERE p.grant_id = g.id) <> CASE WHEN g.free = 1 THEN 3 ELSE 5 END"))
                .await,
        );
        none(
            "a live name whose route names a certificate without a key",
            self.count(sql("SELECT count(*) AS n FROM routes r LEFT JOIN certificates c ON c.id = r.certificate_id \
                 WHERE r.action = 'serve' AND r.domain_id IS NOT NULL AND (c.id IS NULL OR c.sealed_key IS NULL)"))
                .await,
        );
        self.check_standing().await;
    }

    /// What the fleet is counted by says of every row what the model says of it now.
    pub async fn check_standing(&self) {
        let stmt = sql("SELECT d.*, c.not_after AS ends, (SELECT o.state FROM orders o WHERE o.domain_id = d.id \
               ORDER BY CASE WHEN o.state IN ('issued', 'failed', 'lost') THEN 1 ELSE 0 END, o.created_at DESC, o.id DESC \
               LIMIT 1) AS order_state, m.hold \
             FROM domains d LEFT JOIN certificates c ON c.id = d.certificate_id \
               LEFT JOIN imports m ON m.id = d.import_id AND d.lane = 'bulk'");
        for row in self.app.store.query(stmt).await.unwrap() {
            let domain = nameplate::store::situation::domain(&row).unwrap();
            let (order, held) = (row.opt_parse("order_state").unwrap(), row.opt_parse("hold").unwrap());
            let stands = standing::of_row(&domain, order, held);
            let ends = row.opt_moment("ends").unwrap().filter(|_| domain.claim == Claim::Live);
            let written = (row.text("standing").unwrap(), row.text("acts").unwrap());
            assert_eq!(written, (stands.code().to_owned(), stands.acts().as_str().to_owned()), "{}", domain.id);
            assert_eq!(row.opt_moment("certificate_until").unwrap(), ends, "{}", domain.id);
            assert!(row.moment("standing_since").unwrap() <= self.env.now());
        }
    }
}
