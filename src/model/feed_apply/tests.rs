use proptest::prelude::*;

use super::*;
use crate::model::feed::Material;
use crate::model::hostname::Hostname;

const EPOCH: i64 = 7;

fn tenant_id() -> TenantId {
    TenantId::mint(Moment::from_secs(1), [1; 10])
}

fn certificate_id(n: u8) -> CertificateId {
    CertificateId::mint(Moment::from_secs(1), [n; 10])
}

fn host(name: &str, certificate: Option<u8>, action: HostAction, version: i64) -> Entry {
    Entry::Host(HostEntry {
        redirect_to: None,
        hostname: Hostname::trusted(name),
        tenant_id: tenant_id(),
        slug: "acme".to_owned(),
        term: 1,
        action,
        certificate_id: certificate.map(certificate_id),
        version,
    })
}

fn certificate(n: u8, name: &str, not_after: i64, version: i64) -> Entry {
    let material = Material {
        names: vec![name.to_owned()],
        chain: String::new(),
        sealed_key: vec![n],
        serial: format!("{n:02x}"),
        not_after: Moment::from_secs(not_after),
        platform: false,
    };
    Entry::Certificate(CertificateEntry { id: certificate_id(n), version, material: Some(material) })
}

fn destroyed(n: u8) -> Entry {
    Entry::Certificate(CertificateEntry { id: certificate_id(n), version: 2, material: None })
}

fn challenge(token: &str, answer: Option<&str>, version: i64) -> Entry {
    Entry::Challenge(ChallengeEntry {
        token: token.to_owned(),
        hostname: Hostname::trusted("a.example.com"),
        key_authorization: answer.map(str::to_owned),
        version,
    })
}

fn tenant(version: i64) -> Entry {
    Entry::Tenant(TenantEntry {
        id: tenant_id(),
        slug: "acme".to_owned(),
        region: "eu".to_owned(),
        stamp: "eu-1".to_owned(),
        shard: 0,
        tier: "standard".to_owned(),
        status: "active".to_owned(),
        version,
    })
}

fn book(entries: Vec<Entry>) -> Book {
    Book::from_snapshot(Snapshot { position: Position { epoch: EPOCH, seq: 10 }, entries })
}

fn deltas(after: i64, upto: i64, entries: Vec<Entry>) -> Deltas {
    Deltas { epoch: EPOCH, after, upto, entries }
}

fn shown(book: &Book, name: &str) -> Option<CertificateId> {
    book.certificate_for(name, Moment::from_secs(100)).map(|c| c.id.clone())
}

#[test]
fn what_does_not_connect_asks_for_a_snapshot_and_changes_nothing() {
    let mut b = book(vec![tenant(1)]);
    let before = b.clone();
    assert_eq!(b.apply(deltas(12, 13, vec![])), Err(NeedSnapshot::Gap { have: 10, after: 12 }));
    let other = Deltas { epoch: 8, ..deltas(10, 11, vec![tenant(2)]) };
    assert_eq!(b.apply(other), Err(NeedSnapshot::NewEpoch { have: EPOCH, seen: 8 }));
    assert_eq!(b.apply(deltas(3, 9, vec![tenant(2)])), Ok(Applied::default()));
    assert_eq!(b, before);
}

#[test]
fn newer_wins_same_is_nothing_older_is_refused() {
    let mut b = book(vec![host("a.example.com", None, HostAction::Gone, 5)]);
    let older = b.apply(deltas(10, 11, vec![host("a.example.com", None, HostAction::Serve, 4)])).unwrap();
    assert_eq!((older.refused.as_slice(), older.hosts.len()), (["a.example.com".to_owned()].as_slice(), 0));
    assert!(b.host("a.example.com").is_none());
    assert_eq!(
        b.apply(deltas(11, 12, vec![host("a.example.com", None, HostAction::Serve, 5)])).unwrap(),
        Applied::default()
    );
    let newer = b.apply(deltas(12, 13, vec![host("a.example.com", None, HostAction::Serve, 6)])).unwrap();
    assert_eq!(newer.hosts.len(), 1);
    assert!(b.host("a.example.com").is_some());
    assert_eq!(b.position(), Position { epoch: EPOCH, seq: 13 });
}

#[test]
fn exact_wins_over_wildcard_and_a_star_is_one_label() {
    let exact = || vec![host("a.example.com", Some(1), HostAction::Serve, 1), certificate(1, "a.example.com", 200, 1)];
    let star = || vec![host("*.example.com", Some(2), HostAction::Serve, 1), certificate(2, "*.example.com", 200, 1)];
    for b in [book([exact(), star()].concat()), book([star(), exact()].concat())] {
        assert_eq!(shown(&b, "a.example.com"), Some(certificate_id(1)));
        assert_eq!(shown(&b, "b.example.com"), Some(certificate_id(2)));
        for none in ["x.a.example.com", "example.com", ".example.com", "*.example.com", "", "com", "nobody.example"] {
            let want = (none == "*.example.com").then(|| certificate_id(2));
            assert_eq!(shown(&b, none), want, "{none:?}");
        }
    }
    let expired = vec![host("a.example.com", Some(1), HostAction::Serve, 1), certificate(1, "a.example.com", 50, 1)];
    assert_eq!(shown(&book([expired.clone(), star()].concat()), "a.example.com"), Some(certificate_id(2)));
    assert_eq!(shown(&book(expired), "a.example.com"), Some(certificate_id(1)));
}

fn of_another_tenant(entry: Entry) -> Entry {
    let Entry::Host(host) = entry else { return entry };
    Entry::Host(HostEntry { tenant_id: TenantId::mint(Moment::from_secs(1), [2; 10]), ..host })
}

fn redirecting(entry: Entry, to: &str) -> Entry {
    let Entry::Host(host) = entry else { return entry };
    Entry::Host(HostEntry { redirect_to: Some(Hostname::trusted(to)), ..host })
}

#[test]
fn an_exact_name_never_shows_another_tenants_wildcard() {
    let wild = || of_another_tenant(host("*.example.com", Some(2), HostAction::Serve, 1));
    let star = || certificate(2, "*.example.com", 200, 1);
    let valid =
        vec![host("a.example.com", Some(1), HostAction::Serve, 1), certificate(1, "a.example.com", 200, 1), wild(), star()];
    let b = book(valid);
    assert_eq!(shown(&b, "a.example.com"), Some(certificate_id(1)));
    assert_eq!(shown(&b, "b.example.com"), Some(certificate_id(2)));
    assert_ne!(b.host("a.example.com").unwrap().tenant_id, b.host("b.example.com").unwrap().tenant_id);
    let expired =
        vec![host("a.example.com", Some(1), HostAction::Serve, 1), certificate(1, "a.example.com", 50, 1), wild(), star()];
    assert_eq!(shown(&book(expired), "a.example.com"), Some(certificate_id(1)), "the expired one of its own");
    let bare = vec![host("a.example.com", None, HostAction::Serve, 1), wild(), star()];
    assert_eq!(shown(&book(bare), "a.example.com"), None);
    let gone = vec![host("a.example.com", None, HostAction::Gone, 1), wild(), star()];
    assert_eq!(
        shown(&book(gone), "a.example.com"),
        Some(certificate_id(2)),
        "let go of, it is the wildcard's like any other"
    );
}

#[test]
fn a_host_sends_visitors_on_only_to_what_is_served_for_the_same_tenant() {
    let apex = || redirecting(host("example.com", Some(1), HostAction::Serve, 1), "www.example.com");
    let own = || certificate(1, "example.com", 200, 1);
    let www = |action| host("www.example.com", Some(2), action, 1);
    let leads = |entries: Vec<Entry>, now: i64| {
        let b = book([vec![apex(), own()], entries].concat());
        let host = b.host("example.com").unwrap().clone();
        b.redirect_of(&host, Moment::from_secs(now)).map(str::to_owned)
    };
    let there = || certificate(2, "www.example.com", 200, 1);
    let to = Some("www.example.com".to_owned());
    assert_eq!(leads(vec![www(HostAction::Serve), there()], 100), to);
    assert_eq!(leads(vec![www(HostAction::Serve), there()], 200), None, "its certificate has ended");
    assert_eq!(leads(vec![www(HostAction::Serve)], 100), None, "it has none");
    assert_eq!(leads(vec![there()], 100), None, "it is not served");
    assert_eq!(leads(vec![www(HostAction::Gone), there()], 100), None);
    assert_eq!(leads(vec![of_another_tenant(www(HostAction::Serve)), there()], 100), None);
    assert_eq!(leads(vec![redirecting(www(HostAction::Serve), "example.com"), there()], 100), None, "no loops");
    let star = vec![host("*.example.com", Some(2), HostAction::Serve, 1), certificate(2, "*.example.com", 200, 1)];
    assert_eq!(leads(star, 100), None, "a wildcard is not the other half");
    let itself = book(vec![redirecting(host("example.com", Some(1), HostAction::Serve, 1), "example.com"), own()]);
    let host = itself.host("example.com").unwrap().clone();
    assert_eq!(itself.redirect_of(&host, Moment::from_secs(100)), None);
}

#[test]
fn a_host_of_an_earlier_release_is_read_and_one_without_a_redirect_is_written_as_before() {
    let entry = host("a.example.com", None, HostAction::Serve, 1);
    let text = serde_json::to_string(&entry).unwrap();
    assert!(!text.contains("redirect_to"), "{text}");
    assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry);
    let sends = redirecting(entry, "www.a.example.com");
    assert_eq!(serde_json::from_str::<Entry>(&serde_json::to_string(&sends).unwrap()).unwrap(), sends);
}

#[test]
fn a_certificate_is_never_shown_for_a_name_it_does_not_carry() {
    let b = book(vec![host("a.example.com", Some(1), HostAction::Serve, 1), certificate(1, "b.example.com", 200, 1)]);
    assert_eq!(shown(&b, "a.example.com"), None);
}

fn platform(n: u8, names: &[&str], not_after: i64) -> Entry {
    let Entry::Certificate(mut entry) = certificate(n, "", not_after, 1) else { unreachable!() };
    let material = entry.material.as_mut().unwrap();
    (material.names, material.platform) = (names.iter().map(|&n| n.to_owned()).collect(), true);
    Entry::Certificate(entry)
}

#[test]
fn hosts_without_a_certificate_of_their_own_share_the_platforms_exact_before_star_newer_before_older() {
    let hosts = vec![
        host("a.app.test", None, HostAction::Serve, 1),
        host("b.app.test", None, HostAction::Serve, 1),
        host("own.app.test", Some(9), HostAction::Serve, 1),
        host("gone.app.test", None, HostAction::Gone, 1),
        host("a.b.app.test", None, HostAction::Serve, 1),
    ];
    let mut b = book([hosts, vec![platform(1, &["*.app.test"], 200)]].concat());
    assert_eq!(shown(&b, "a.app.test"), Some(certificate_id(1)));
    for nothing in ["own.app.test", "gone.app.test", "a.b.app.test", "stranger.app.test", "app.test", "*.app.test"] {
        assert_eq!(shown(&b, nothing), None, "{nothing}");
    }
    let two = vec![platform(2, &["a.app.test"], 200), platform(3, &["*.app.test", "app.test"], 300)];
    let applied = b.apply(deltas(10, 12, two)).unwrap();
    assert_eq!([shown(&b, "a.app.test"), shown(&b, "b.app.test")], [Some(certificate_id(2)), Some(certificate_id(3))]);
    let looked: Vec<_> = b.served_after(&applied).into_iter().map(|s| (s.hostname, s.certificate.id.clone())).collect();
    assert_eq!(looked, [("a.app.test".into(), certificate_id(2)), ("b.app.test".into(), certificate_id(3))]);
    // The exact one is over: the star that is valid; nothing valid: the best there is.
    let mut expired = book(vec![host("a.app.test", None, HostAction::Serve, 1), platform(2, &["a.app.test"], 50)]);
    assert_eq!(shown(&expired, "a.app.test"), Some(certificate_id(2)));
    expired.apply(deltas(10, 11, vec![platform(1, &["*.app.test"], 200)])).unwrap();
    assert_eq!(shown(&expired, "a.app.test"), Some(certificate_id(1)));
    b.apply(deltas(12, 15, vec![destroyed(1), destroyed(2), destroyed(3)])).unwrap();
    assert_eq!(shown(&b, "a.app.test"), None);
    assert_eq!(b.served_unlike(None).count(), 0);
}

#[test]
fn a_deleted_tenants_hosts_are_unknown() {
    let entries =
        vec![tenant(1), host("a.example.com", Some(1), HostAction::Serve, 1), certificate(1, "a.example.com", 200, 1)];
    let mut b = book(entries);
    assert_eq!((b.serving(), shown(&b, "a.example.com")), (1, Some(certificate_id(1))));
    let Entry::Tenant(mut gone) = tenant(2) else { unreachable!() };
    gone.status = "deleted".to_owned();
    b.apply(deltas(10, 11, vec![Entry::Tenant(gone)])).unwrap();
    assert!(b.host("a.example.com").is_none() && b.served("a.example.com").is_none());
    assert_eq!((b.serving(), shown(&b, "a.example.com")), (0, None));
}

#[test]
fn a_restored_control_plane_adds_to_the_book_and_takes_nothing_away() {
    let known =
        |n: u8, name: &str, version| vec![host(name, Some(n), HostAction::Serve, version), certificate(n, name, 200, 1)];
    let b = book([known(1, "a.example.com", 5), known(2, "b.example.com", 5), vec![tenant(3)]].concat());
    let snapshot = Snapshot {
        position: Position { epoch: EPOCH + 1, seq: 4 },
        entries: [known(3, "a.example.com", 4), known(4, "c.example.com", 1), vec![tenant(2)]].concat(),
    };
    let recovered = b.with_recovered(snapshot);
    assert_eq!(recovered.position(), Position { epoch: EPOCH + 1, seq: 4 });
    assert_eq!(shown(&recovered, "a.example.com"), Some(certificate_id(1)), "the newer one is the edge's own");
    assert_eq!(shown(&recovered, "b.example.com"), Some(certificate_id(2)), "the copy does not know it");
    assert_eq!(shown(&recovered, "c.example.com"), Some(certificate_id(4)));
}

#[test]
fn what_must_be_looked_at_again_follows_from_the_change() {
    let mut b = book(vec![host("a.example.com", Some(1), HostAction::Serve, 1), certificate(1, "a.example.com", 200, 1)]);
    let empty = book(vec![]);
    assert_eq!(b.served_unlike(Some(&empty)).count(), 1);
    assert_eq!(b.served_unlike(Some(&b)).count(), 0);
    let renewed =
        vec![certificate(2, "a.example.com", 300, 1), host("a.example.com", Some(2), HostAction::Serve, 2), destroyed(1)];
    let applied = b.apply(deltas(10, 13, renewed)).unwrap();
    let served = b.served_after(&applied);
    assert_eq!(
        served.iter().map(|s| (&*s.hostname, s.certificate.id.clone())).collect::<Vec<_>>(),
        [("a.example.com", certificate_id(2))]
    );
}

/// One change to a world of a few subjects: which subject, and what it becomes.
fn changes() -> impl Strategy<Value = Vec<(u8, u8)>> {
    prop::collection::vec((0..6u8, 0..3u8), 0..40)
}

/// The present state of a subject under a version.
fn state(subject: u8, what: u8, version: i64) -> Entry {
    match subject {
        0 => tenant(version),
        1 | 2 => {
            let action = if what == 0 { HostAction::Gone } else { HostAction::Serve };
            host(["a.example.com", "*.example.com"][usize::from(subject - 1)], Some(what), action, version)
        }
        3 => challenge("token", (what > 0).then_some("answer"), version),
        n if what == 0 => Entry::Certificate(CertificateEntry { id: certificate_id(n), version, material: None }),
        n => certificate(n, "a.example.com", i64::from(what) * 100, version),
    }
}

/// What a snapshot lists: all but what is destroyed or over.
fn listed(entry: &Entry) -> bool {
    match entry {
        Entry::Certificate(e) => e.material.is_some(),
        Entry::Challenge(e) => e.key_authorization.is_some(),
        Entry::Host(_) | Entry::Tenant(_) => true,
    }
}

proptest! {
    /// Bodies are rendered when sent, so a delta may carry a newer state than the one its number stands for.
    #[test]
    fn applying_deltas_equals_taking_the_snapshot(
        changes in changes(), cuts in prop::collection::vec(0..40usize, 0..6), start in 0..40usize, ahead in 0..4usize,
    ) {
        let versions = |n: usize| i64::try_from(n).unwrap() + 1;
        let latest = |subject: u8, seen: usize| changes.iter().take(seen).enumerate().rev().find(|(_, c)| c.0 == subject)
            .map(|(n, c)| state(subject, c.1, versions(n)));
        let snapshot = |seen: usize| Book::from_snapshot(Snapshot {
            position: Position { epoch: EPOCH, seq: i64::try_from(seen).unwrap() },
            entries: (0..6).filter_map(|s| latest(s, seen)).filter(listed).collect(),
        });
        let end = changes.len();
        let mut at = start.min(end);
        let mut book = snapshot(at);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(end)).chain([end]).collect();
        cuts.sort_unstable();
        for cut in cuts {
            let rendered = (cut + ahead).min(end);
            let mut subjects: Vec<u8> = changes[at.min(cut)..cut].iter().map(|c| c.0).collect();
            subjects.dedup();
            let entries = subjects.into_iter().filter_map(|s| latest(s, rendered)).collect();
            let applied = book.apply(deltas(i64::try_from(at).unwrap(), i64::try_from(cut).unwrap(), entries)).unwrap();
            prop_assert!(applied.refused.is_empty(), "{:?}", applied.refused);
            at = at.max(cut);
        }
        prop_assert_eq!(&book, &snapshot(end));
        prop_assert_eq!(&Book::from_snapshot(book.to_snapshot()), &book);
    }
}

#[test]
fn all_names_are_walked_through_in_their_order_a_few_at_a_time() {
    let names = ["a.example.com", "b.example.com", "c.example.com", "d.example.com", "e.example.com"];
    let mut entries: Vec<Entry> = Vec::new();
    for (n, name) in (1_u8..).zip(names) {
        let action = if n == 4 { HostAction::Gone } else { HostAction::Serve };
        entries.push(certificate(n, name, 100, 1));
        entries.push(host(name, Some(n), action, 1));
    }
    let book = Book::from_snapshot(Snapshot { position: Position { epoch: EPOCH, seq: 1 }, entries });
    let walk = |after| book.served_from(after, 2).into_iter().map(|s| s.hostname.to_string()).collect::<Vec<_>>();
    assert_eq!(walk(""), ["a.example.com", "b.example.com"]);
    assert_eq!(walk("b.example.com"), ["c.example.com", "e.example.com"]);
    assert!(walk("e.example.com").is_empty());
}
