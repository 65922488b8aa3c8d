//! Several CAs: a name goes to the first that may and can issue for it; and the life of our accounts there.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nameplate::acme::{AccountRef, AccountUrl, AcmeError, Authority, Call, Kind, ProblemDoc};
use nameplate::app::account::{self, RollError, RollWith};
use nameplate::app::{self, dispatch};
use nameplate::mint;
use nameplate::model::id::{DomainId, IssuerId};
use nameplate::model::ledger::Limit;
use nameplate::model::limits::{self, Counted, LimitName};
use nameplate::model::secret::Secret;
use nameplate::sandbox::ca::DirectCa;
use nameplate::store::issuers::{self, IssuerSeed};
use nameplate::store::sql;
use nameplate::vault::{Context, Sealed};
use serde_json::json;

use crate::support::rig::Rig;
use crate::support::stores::{Kind as Database, TestStore};

const HOUR: Duration = Duration::from_secs(3600);

fn unreached() -> AcmeError {
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

fn crowded(wait: u64) -> AcmeError {
    let detail = "too many certificates (50) already issued for \"acme.test\" in the last 168h0m0s";
    let problem = json!({"type": "urn:ietf:params:acme:error:rateLimited", "detail": detail, "status": 429});
    AcmeError {
        kind: Kind::Refused,
        problem: ProblemDoc::new(problem),
        status: Some(429),
        retry_after: Some(Duration::from_secs(wait)),
        ..unreached()
    }
}

async fn claimed(rig: &Rig, slug: &str, name: &str) -> DomainId {
    let tenant = rig.tenant(slug).await;
    let id = rig.claim(&tenant, name).await;
    rig.publish(&id, name).await;
    id
}

fn issued(ca: &DirectCa) -> usize {
    ca.counted().iter().filter(|(what, ..)| *what == Counted::Certificate).count()
}

async fn two() -> (Rig, Arc<DirectCa>) {
    let mut rig = Rig::new(80).await;
    let other = rig.add_issuer("other").await;
    let app = rig.new_worker();
    assert_eq!(account::ensure_all(&app).await.unwrap(), 2, "the new one needs no restart");
    (rig, other)
}

#[tokio::test]
async fn a_caa_that_excludes_one_ca_moves_the_name_to_the_next() {
    let (rig, other) = two().await;
    rig.zones.add("acme.test. 60 IN CAA 0 issue \"other.test\"").unwrap();
    let id = claimed(&rig, "acme", "a.acme.test").await;
    rig.until_active(&id, HOUR).await;
    assert_eq!((issued(&rig.ca), issued(&other), rig.ca.asked()), (0, 1, 0));
    rig.also_zone("free.test");
    let free = claimed(&rig, "beta", "b.free.test").await;
    rig.until_active(&free, HOUR).await;
    assert_eq!((issued(&rig.ca), issued(&other)), (1, 1), "where CAA allows both the preferred one issues");
    rig.check_invariants().await;
}

/// CAA changes while the order waits, and again once it has its grant: each time it goes where it may.
#[tokio::test]
async fn b28_a_caa_that_changes_before_the_order_moves_it() {
    let (rig, other) = two().await;
    let id = claimed(&rig, "acme", "a.acme.test").await;
    let app = rig.new_worker();
    for _ in 0..3 {
        app::advance::advance(&app, &id).await.unwrap();
    }
    assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), "queued");
    dispatch::round(&app).await.unwrap();
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM orders WHERE state = 'granted'")).await, 1);
    rig.hand.advance(Duration::from_secs(200));
    rig.zones.add("acme.test. 60 IN CAA 0 issue \"other.test\"").unwrap();
    rig.until_active(&id, HOUR).await;
    assert_eq!((rig.ca.asked(), issued(&other)), (0, 1));
    let open = rig.count(sql("SELECT count(*) AS n FROM spends")).await;
    assert_eq!(open, 0, "the grant at the first CA went back whole");
    rig.check_invariants().await;
}

#[tokio::test]
async fn a_ca_that_fails_hands_its_names_to_the_next() {
    let (rig, other) = two().await;
    rig.ca.refuse((0..10_000).map(|_| unreached()));
    let mut ids = Vec::new();
    for n in 0..8 {
        ids.push(claimed(&rig, &format!("t{n}"), &format!("n{n}.acme.test")).await);
    }
    for id in &ids {
        rig.until_active(id, 2 * HOUR).await;
    }
    assert_eq!((issued(&rig.ca), issued(&other)), (0, 8));
    assert!(rig.ca.asked() < 60, "{} questions to a CA that does not answer", rig.ca.asked());
    rig.check_invariants().await;
}

#[tokio::test]
async fn a_domain_that_is_used_up_at_one_ca_goes_to_the_next() {
    let (rig, other) = two().await;
    rig.ca.refuse([crowded(3 * 86_400)]);
    let id = claimed(&rig, "acme", "a.acme.test").await;
    rig.until_active(&id, 2 * HOUR).await;
    assert_eq!((issued(&rig.ca), issued(&other)), (0, 1));
    rig.check_invariants().await;
}

/// The CA's word on the whole account.
fn too_many_orders(wait: u64) -> AcmeError {
    let detail = "too many new orders (300) from this account in the last 3h0m0s";
    let problem = json!({"type": "urn:ietf:params:acme:error:rateLimited", "detail": detail, "status": 429});
    AcmeError { problem: ProblemDoc::new(problem), ..crowded(wait) }
}

/// A CA that closes our account for days sends all that waits there to the next, as far as CAA allows; it is asked again when it said.
#[tokio::test]
async fn an_account_that_is_closed_for_long_hands_its_names_to_the_next() {
    for kind in [Database::SqliteMemory, Database::Postgres] {
        let store = TestStore::blank(kind).await;
        let mut rig = Rig::on(95, &store.url).await;
        let other = rig.add_issuer("other").await;
        account::ensure_all(&rig.new_worker()).await.unwrap();
        rig.also_zone("only.test");
        rig.zones.add("only.test. 60 IN CAA 0 issue \"ca.test\"").unwrap();
        rig.ca.refuse([too_many_orders(2 * 86_400)]);
        let bound = claimed(&rig, "only", "www.only.test").await;
        rig.pass(HOUR / 4).await;
        assert_eq!(rig.ca.asked(), 1);
        let mut ids = Vec::new();
        for n in 0..6 {
            ids.push(claimed(&rig, &format!("t{n}"), &format!("n{n}.acme.test")).await);
        }
        for id in &ids {
            rig.until_active(id, HOUR).await;
        }
        assert_eq!((issued(&rig.ca), issued(&other), rig.ca.asked()), (0, 6, 1), "{kind:?}");
        rig.pass_quickly(HOUR * 12).await;
        assert_eq!(rig.ca.asked(), 1, "{kind:?}: {}", rig.story(&bound).await);
        rig.until_active(&bound, 48 * HOUR).await;
        assert_eq!((issued(&rig.ca), issued(&other)), (1, 6), "{kind:?}: CAA allows no other");
        rig.check_invariants().await;
        drop(rig);
        store.remove().await;
    }
}

/// Who stands in the queue already when the account is closed is looked at anew, even where no round has room for anybody. Closed
/// for less than an hour, and used up by ourselves, nobody leaves.
#[tokio::test]
async fn who_waits_leaves_an_account_that_is_closed_for_long_and_no_other() {
    let mut rig = Rig::with_limit(96, "sqlite::memory:", Limit { burst: 1, per_secs: 10 * 86_400 }).await;
    let other = rig.add_issuer("other").await;
    account::ensure_all(&rig.new_worker()).await.unwrap();
    let mut ids = Vec::new();
    for n in 0..4 {
        ids.push(claimed(&rig, &format!("t{n}"), &format!("n{n}.acme.test")).await);
    }
    rig.pass(2 * HOUR).await;
    assert_eq!((issued(&rig.ca), issued(&other)), (1, 0), "a mere queue");
    let close = async |wait: Duration| {
        let stmt = sql("UPDATE ledger SET closed = 'used_up_by_others', closed_at = $1, closed_until = $2, refusals = 1 \
             WHERE key = 'account' AND issuer_id = (SELECT id FROM issuers WHERE name = 'main')");
        let (now, until) = (rig.env.now(), rig.env.now() + wait);
        rig.app.store.execute(stmt.bind(now).bind(until)).await.unwrap();
    };
    close(HOUR / 2).await;
    rig.pass(HOUR / 4).await;
    assert_eq!((issued(&rig.ca), issued(&other)), (1, 0), "half an hour is worth the wait");
    close(2 * 24 * HOUR).await;
    rig.pass(HOUR / 2).await;
    assert_eq!((issued(&rig.ca), issued(&other)), (1, 3));
    rig.check_invariants().await;
}

/// What the CA closed opens when the CA said, whatever is configured for that limit meanwhile: not sooner where there is more room by
/// now, or no such limit, and not a week later.
#[tokio::test]
async fn what_the_ca_closed_opens_when_it_said_whatever_is_configured() {
    for (kind, seed) in [(Database::SqliteMemory, 97), (Database::Postgres, 98)] {
        for numbers in [None, Some(Limit { burst: 5_000, per_secs: 7 * 86_400 })] {
            let store = TestStore::blank(kind).await;
            let rig = Rig::with_limits(seed, &store.url, limits::usual()).await;
            rig.ca.refuse([crowded(7_200)]);
            let mut ids = vec![claimed(&rig, "first", "a.acme.test").await];
            rig.pass(Duration::from_secs(120)).await;
            assert_eq!(rig.ca.asked(), 1);
            let mut all = limits::usual();
            match numbers {
                Some(numbers) => all.insert(LimitName::CertificatesPerDomain, numbers),
                None => all.remove(&LimitName::CertificatesPerDomain),
            };
            let stmt = sql("UPDATE issuers SET limits = $1").bind(serde_json::to_string(&all).unwrap());
            rig.app.store.execute(stmt).await.unwrap();
            for n in 0..3 {
                ids.push(claimed(&rig, &format!("t{n}"), &format!("n{n}.acme.test")).await);
            }
            rig.pass(HOUR).await;
            assert_eq!(rig.ca.asked(), 1, "{kind:?} {numbers:?}: {}", rig.story(&ids[1]).await);
            rig.pass(HOUR + Duration::from_secs(600)).await;
            assert_eq!(issued(&rig.ca), 4, "{kind:?} {numbers:?}: {}", rig.story(&ids[1]).await);
            rig.check_invariants().await;
            drop(rig);
            store.remove().await;
        }
    }
}

/// A limit that was changed while names waited for it holds them no longer than it does now.
#[tokio::test]
async fn a_limit_that_is_raised_lets_through_who_waited_for_it() {
    for (kind, seed) in [(Database::SqliteMemory, 99), (Database::Postgres, 100)] {
        let store = TestStore::blank(kind).await;
        let mut all = limits::usual();
        all.insert(LimitName::CertificatesPerDomain, Limit { burst: 1, per_secs: 7 * 86_400 });
        let rig = Rig::with_limits(seed, &store.url, all.clone()).await;
        for n in 0..3 {
            claimed(&rig, &format!("t{n}"), &format!("n{n}.acme.test")).await;
        }
        rig.pass(HOUR).await;
        assert_eq!(issued(&rig.ca), 1, "{kind:?}");
        all.insert(LimitName::CertificatesPerDomain, Limit { burst: 5_000, per_secs: 7 * 86_400 });
        let id = issuers::list(&rig.app.store).await.unwrap().remove(0).id;
        let mut tx = rig.app.store.begin().await.unwrap();
        let row = issuers::lock(&mut tx, &id).await.unwrap().unwrap();
        let terms = issuers::Terms { preference: row.preference, profile: row.profile, limits: all };
        issuers::set(&mut tx, &id, &terms, rig.env.now()).await.unwrap();
        tx.commit().await.unwrap();
        rig.pass(HOUR / 4).await;
        assert_eq!(issued(&rig.ca), 3, "{kind:?}");
        drop(rig);
        store.remove().await;
    }
}

/// The key that the issuer's row has now.
async fn key_of(rig: &Rig) -> (AccountRef, issuers::IssuerRow) {
    let row = issuers::list(&rig.app.store).await.unwrap().remove(0);
    let sealed = Sealed::try_from(row.account_key.clone().unwrap()).unwrap();
    let key: Secret = rig.app.vault.open(&Context::new("account-key", row.id.as_str()), &sealed).unwrap();
    (AccountRef { url: AccountUrl(row.account_url.clone().unwrap()), key }, row)
}

/// B40 for the account's own key: the new one is stored before the CA hears of it, so a lost answer loses nothing.
#[tokio::test]
async fn b40_a_key_is_rolled_over_whatever_is_cut_off() {
    let rig = Rig::new(81).await;
    let with = RollWith { env: &rig.env, store: &rig.app.store, vault: &rig.app.vault };
    let row = issuers::list(&rig.app.store).await.unwrap().remove(0);
    let none = account::roll_key(&with, rig.ca.as_ref(), &row, "me").await.unwrap_err();
    assert!(matches!(none, RollError::NoAccount(_)), "{none}");
    account::ensure_all(&rig.new_worker()).await.unwrap();
    let (old, row) = key_of(&rig).await;
    rig.ca.account(&old).await.unwrap();

    rig.ca.lose_key_change();
    assert!(account::roll_key(&with, rig.ca.as_ref(), &row, "me").await.is_err());
    let (still, row) = key_of(&rig).await;
    assert_eq!(still.key, old.key, "nobody knows yet that the CA took the new one");
    account::roll_key(&with, rig.ca.as_ref(), &row, "me").await.unwrap();
    let (new, row) = key_of(&rig).await;
    assert!(new.key != old.key && row.next_account_key.is_none());
    rig.ca.account(&new).await.unwrap();
    assert!(rig.ca.account(&old).await.is_err());

    // Without trouble, once more; and while another process has the account in hand, not at all.
    account::roll_key(&with, rig.ca.as_ref(), &row, "me").await.unwrap();
    let (newer, row) = key_of(&rig).await;
    assert_ne!(newer.key, new.key);
    issuers::take(&rig.app.store, &row.id, "another", rig.env.now(), HOUR).await.unwrap().unwrap();
    let busy = account::roll_key(&with, rig.ca.as_ref(), &row, "me").await.unwrap_err();
    assert!(matches!(busy, RollError::Busy(_)), "{busy}");
}

/// A CA that takes no other key: the account keeps its own, nothing of the other stays, and another time is another try.
#[tokio::test]
async fn a_key_that_the_ca_refuses_is_forgotten_and_the_account_keeps_its_own() {
    let rig = Rig::new(86).await;
    let with = RollWith { env: &rig.env, store: &rig.app.store, vault: &rig.app.vault };
    account::ensure_all(&rig.new_worker()).await.unwrap();
    let (old, row) = key_of(&rig).await;
    rig.ca.refuse_key_change();
    let refused = account::roll_key(&with, rig.ca.as_ref(), &row, "me").await.unwrap_err();
    assert!(matches!(refused, RollError::Refused(_)), "{refused}");
    let (still, row) = key_of(&rig).await;
    // Were it kept, nobody would believe the CA any more that the account is gone.
    assert!(still.key == old.key && row.next_account_key.is_none());
    // Where the CA took one before and its answer was lost, a refusal is no reason to forget it.
    rig.ca.account(&old).await.unwrap();
    rig.ca.lose_key_change();
    assert!(account::roll_key(&with, rig.ca.as_ref(), &row, "me").await.is_err());
    let (_, row) = key_of(&rig).await;
    assert!(row.next_account_key.is_some());
    account::roll_key(&with, rig.ca.as_ref(), &row, "me").await.unwrap();
    assert_ne!(key_of(&rig).await.0.key, old.key);
}

/// An issuer without an account is asked less and less often, and stands in no name's way, be it preferred or not.
#[tokio::test]
async fn an_issuer_that_never_has_an_account_holds_up_nobody_and_is_asked_ever_less() {
    let mut rig = Rig::new(87).await;
    let other = rig.add_issuer("other").await;
    rig.app.store.execute(sql("UPDATE issuers SET preference = -1 WHERE name = 'other'")).await.unwrap();
    let main: Arc<dyn Authority> = rig.ca.clone();
    rig.app.authorities = Arc::new(HashMap::from([("main".to_owned(), main)]));
    let app = rig.new_worker();
    let mut asked = Vec::new();
    let end = rig.env.now() + HOUR * 2;
    let mut before = 0;
    while rig.env.now() < end {
        account::ensure_all(&app).await.unwrap();
        let failures = issuers::list(&app.store).await.unwrap()[0].account_failures;
        if failures > before {
            asked.push(rig.env.now());
            before = failures;
        }
        rig.hand.advance(Duration::from_secs(1));
    }
    assert!((15..=25).contains(&asked.len()), "asked {} times in two hours", asked.len());
    assert!(asked[1].since(asked[0]) <= Duration::from_secs(3), "a CA that was away for a moment is not waited for");
    // It is the preferred one, but has no account: whoever begins anew begins with the other.
    let id = claimed(&rig, "acme", "a.acme.test").await;
    rig.ca.fail_validations(1);
    rig.until_active(&id, HOUR).await;
    assert_eq!((issued(&rig.ca), issued(&other)), (1, 0));
    let moved = "SELECT count(*) AS n FROM events WHERE kind = 'order_moved'";
    assert_eq!(rig.count(sql(moved)).await, 0, "the second order was opened where the first had been");
    rig.check_invariants().await;
}

/// B36: a CAA record that names the account before is looked at anew: it is told with the account there is, and nothing is ordered.
#[tokio::test]
async fn b36_a_permission_for_the_account_before_is_none_for_the_one_there_is() {
    let rig = Rig::new(87).await;
    account::ensure_all(&rig.new_worker()).await.unwrap();
    let url = issuers::list(&rig.app.store).await.unwrap().remove(0).account_url.unwrap();
    let caa = |account: &str| format!("acme.test. 60 IN CAA 0 issue \"ca.test; accounturi={account}\"");
    rig.zones.add(&caa(url.as_str())).unwrap();
    let live = claimed(&rig, "acme", "live.acme.test").await;
    rig.until_active(&live, HOUR).await;
    let asked = rig.ca.asked();
    // Another account at the same CA: the former was lost, or shut.
    let other = format!("{}-another", url.as_str());
    let moved = sql("UPDATE issuers SET account_url = $1").bind(other.as_str());
    assert_eq!(rig.app.store.execute(moved).await.unwrap(), 1);
    let tenant = rig.tenant("beta").await;
    let new = rig.claim(&tenant, "new.acme.test").await;
    rig.publish(&new, "new.acme.test").await;
    for _ in 0..26 {
        while app::routine::batch(&rig.app).await.unwrap().more {}
        rig.pass(HOUR).await;
    }
    for id in [&live, &new] {
        let evidence = rig.domain_text(id, "evidence").await.unwrap();
        assert!(evidence.contains("caa_account_mismatch") && evidence.contains(&other), "{evidence}");
    }
    assert_eq!(rig.ca.asked(), asked, "nothing is ordered without a permission");
    rig.zones.remove(&caa(url.as_str())).unwrap();
    rig.zones.add(&caa(&other)).unwrap();
    let healed = sql("UPDATE issuers SET account_url = $1").bind(url.as_str());
    rig.zones.add(&caa(url.as_str())).unwrap();
    rig.app.store.execute(healed).await.unwrap();
    rig.until_active(&new, 25 * HOUR).await;
}

/// B36: accounts belong to their directory. Another name for it keeps account and ledger; another directory for the name asks for
/// an account there with the same key; a second issuer for one directory is refused.
#[tokio::test]
async fn b36_accounts_belong_to_their_directory() {
    let rig = Rig::new(82).await;
    account::ensure_all(&rig.new_worker()).await.unwrap();
    let (before, row) = key_of(&rig).await;
    let seed = |name: &str, directory: &str| IssuerSeed {
        name: name.to_owned(),
        directory: directory.to_owned(),
        limits: row.limits.clone(),
        ..IssuerSeed::default()
    };
    let seeded = async |seed: IssuerSeed| {
        let mut tx = rig.app.store.begin().await.unwrap();
        issuers::seed(&mut tx, &[seed], rig.env.now(), || mint!(rig.env, IssuerId)).await.unwrap();
        tx.commit().await.unwrap();
    };
    seeded(seed("renamed", &row.directory)).await;
    let (after, renamed) = key_of(&rig).await;
    assert_eq!((renamed.id.clone(), renamed.name.as_str(), after.url), (row.id.clone(), "renamed", before.url));
    assert_eq!(issuers::list(&rig.app.store).await.unwrap().len(), 1);

    seeded(seed("renamed", "https://elsewhere.test/directory")).await;
    let moved = issuers::list(&rig.app.store).await.unwrap().remove(0);
    assert_eq!(
        (moved.account_url, moved.account_key),
        (None, renamed.account_key),
        "the same key is known there, or made known"
    );

    let mut tx = rig.app.store.begin().await.unwrap();
    let id = mint!(rig.env, IssuerId);
    let second = issuers::add(&mut tx, &seed("third", "https://elsewhere.test/directory"), rig.env.now(), &id).await;
    assert!(second.is_err());
}
