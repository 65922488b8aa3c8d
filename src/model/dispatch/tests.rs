use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use super::*;
use crate::model::limits::spends;

const ACCOUNT_LIMIT: Limit = Limit { burst: 10, per_secs: 100 };

fn limits() -> Limits {
    [
        (LimitName::OrdersPerAccount, ACCOUNT_LIMIT),
        (LimitName::CertificatesPerDomain, Limit { burst: 3, per_secs: 900 }),
        (LimitName::CertificatesPerName, Limit { burst: 2, per_secs: 4_000 }),
    ]
    .into()
}

fn waiting(n: u16, tenant: u8, lane: Lane, not_before: Moment, name: &str) -> Waiting {
    let mut drawn = [0; 10];
    drawn[8..].copy_from_slice(&n.to_be_bytes());
    Waiting {
        order_id: OrderId::mint(Moment::from_secs(i64::from(n)), drawn),
        tenant_id: TenantId::mint(Moment::default(), [tenant; 10]),
        lane,
        not_before,
        ends: Moment::NEVER,
        served: 0,
        name: Hostname::trusted(name),
    }
}

/// Names under domains of their own, so that the account's limit alone decides.
fn alone(n: u16, tenant: u8, lane: Lane, not_before: Moment) -> Waiting {
    waiting(n, tenant, lane, not_before, &format!("www.n{n}.example"))
}

const NOW: Moment = Moment::from_secs(10_000);
const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3_600);

/// A renewal of what ends so much later.
fn renewal(n: u16, tenant: u8, left: Duration) -> Waiting {
    Waiting { ends: NOW + left, ..alone(n, tenant, Lane::Renewal, NOW) }
}

/// The numbers of the renewals in the order in which they are served.
fn served(all: &[Waiting]) -> Vec<usize> {
    let d = dispatch(all, &limits(), &Spent::new(), 0, NOW);
    let order = d.grants.iter().chain(d.places.iter().map(|p| &p.order_id));
    order.map(|id| all.iter().position(|w| w.order_id == *id).unwrap()).collect()
}

/// B63: certificates of six days wait beside those of ninety, and a renewal that failed comes back as a new order.
#[test]
fn b63_what_ends_first_is_renewed_first_whoever_waits_longer() {
    let mut all: Vec<Waiting> = (0..30).map(|n| renewal(n, 1, DAY * 25)).collect();
    all.push(renewal(30, 1, DAY * 2));
    all.push(renewal(31, 1, HOUR * 9));
    all.push(renewal(32, 2, DAY * 6));
    assert_eq!(&served(&all)[..4], [31, 30, 32, 0], "the retry with nine hours left is the newest of all");
}

#[test]
fn tenants_take_turns_within_a_day_and_beyond_the_week() {
    let mut all: Vec<Waiting> = (0..4).map(|n| renewal(n, 1, DAY * 5 + HOUR)).collect();
    all.push(renewal(4, 2, DAY * 5 + HOUR * 20));
    assert_eq!(served(&all), [0, 4, 1, 2, 3], "on the same day nobody is first for an hour");
    let mut all: Vec<Waiting> = (0..4).map(|n| renewal(n, 1, DAY * 8)).collect();
    all.push(renewal(4, 2, DAY * 80));
    assert_eq!(served(&all), [0, 4, 1, 2, 3], "and there is time for both");
    let mut all: Vec<Waiting> = (0..4).map(|n| renewal(n, 1, DAY * 4)).collect();
    all.push(renewal(4, 2, DAY * 5 + HOUR));
    assert_eq!(served(&all), [0, 1, 2, 3, 4], "there is not");
}

/// What is far today is near when its turn is foretold for later.
#[test]
fn what_comes_nearer_while_it_waits_is_foretold_so() {
    // Ten at once, then one in ten seconds: tenant 2 comes into the week after 25 of them.
    let mut all: Vec<Waiting> = (0..20).map(|n| renewal(n, 1, DAY * 30)).collect();
    all.extend((20..22).map(|n| Waiting { served: 90, ..renewal(n, 2, DAY * 7 + Duration::from_secs(25)) }));
    let order = served(&all);
    assert_eq!(&order[10..15], [10, 11, 20, 21, 12], "{order:?}");
}

#[test]
fn lanes_share_turns_and_tenants_take_turns() {
    let mut all: Vec<Waiting> = (0..20).map(|n| alone(n, 1, Lane::Bulk, NOW)).collect();
    all.push(alone(20, 2, Lane::Bulk, NOW));
    all.push(alone(21, 1, Lane::Single, NOW));
    let d = dispatch(&all, &limits(), &Spent::new(), 1, NOW);
    assert_eq!(d.grants.len(), 10);
    assert_eq!(d.grants[0], all[21].order_id, "the single claim is not kept waiting by an import");
    assert_eq!(d.grants[2], all[20].order_id, "the second tenant comes second in its lane");
    assert_eq!(d.places[0].eta, NOW + Duration::from_secs(10));
    assert_eq!(d.places[1].eta, NOW + Duration::from_secs(20));
    assert_eq!(d.places[0].position, 1);
}

#[test]
fn whoever_was_served_longest_ago_comes_first() {
    let mut all: Vec<Waiting> = (0..4).map(|n| alone(n, 1, Lane::Bulk, NOW)).collect();
    all.push(alone(4, 2, Lane::Bulk, NOW));
    for w in &mut all[..4] {
        w.served = 8;
    }
    all[4].served = 7;
    let spent = Spent::from([(
        (LimitName::OrdersPerAccount, ACCOUNT.to_owned()),
        Bucket { tat: NOW, open: 9, ..Bucket::default() },
    )]);
    assert_eq!(
        dispatch(&all, &limits(), &spent, 9, NOW).grants,
        [all[4].order_id.clone()],
        "the other had its turn after it"
    );
}

/// Whom the dispatcher set aside comes back in the very moment in which there is room; so does the room.
#[test]
fn room_goes_to_the_oldest_who_waits_and_not_to_whom_comes_with_it() {
    let (name, room) = ("www.acme.example", NOW + Duration::from_secs(300));
    let key = (LimitName::CertificatesPerDomain, "acme.example".to_owned());
    let spent = Spent::from([(key, Bucket { tat: NOW + Duration::from_secs(900), ..Bucket::default() })]);
    let one = |n, from| waiting(n, 1, Lane::Bulk, from, &format!("{n}.{name}"));
    let old = one(0, room);
    let mut all = vec![one(1, NOW), one(2, NOW), one(3, room), one(4, NOW)];
    let etas = |all: &[Waiting]| -> Vec<(u16, u64)> {
        let places = dispatch(all, &limits(), &spent, 0, NOW).places;
        let number = |p: &Place| all.iter().position(|w| w.order_id == p.order_id).unwrap();
        places.iter().map(|p| (u16::try_from(number(p)).unwrap(), p.eta.since(NOW).as_secs())).collect()
    };
    assert_eq!(etas(&all), [(0, 300), (1, 600), (2, 900), (3, 1_200)]);
    all.insert(0, old);
    assert_eq!(etas(&all), [(0, 300), (1, 600), (2, 900), (3, 1_200), (4, 1_500)], "the oldest comes first all the same");
}

#[test]
fn an_order_that_may_not_run_yet_takes_no_slot() {
    let later = NOW + Duration::from_secs(500);
    let d = dispatch(&[alone(1, 1, Lane::Single, later)], &limits(), &Spent::new(), 0, NOW);
    assert!(d.grants.is_empty());
    assert_eq!(d.next_at(), Some(later));
    let never = dispatch(&[alone(1, 1, Lane::Single, Moment::NEVER)], &limits(), &Spent::new(), 0, NOW);
    assert_eq!(never, Dispatched::default(), "what is held back has no place");
}

#[test]
fn a_registered_domain_without_room_keeps_nobody_else_waiting() {
    let mut all: Vec<Waiting> = (0..6).map(|n| waiting(n, 1, Lane::Bulk, NOW, &format!("n{n}.crowded.example"))).collect();
    all.push(alone(6, 1, Lane::Bulk, NOW));
    let d = dispatch(&all, &limits(), &Spent::new(), 0, NOW);
    let granted: Vec<&OrderId> = [0, 1, 2, 6].map(|n| &all[n].order_id).to_vec();
    assert_eq!(d.grants.iter().collect::<Vec<_>>(), granted);
    let room = |n: i64| NOW + Duration::from_secs(300) * u32::try_from(n).unwrap();
    let etas: Vec<_> = d.places.iter().map(|p| (p.eta, p.held)).collect();
    let held = |n| (room(n), Some((LimitName::CertificatesPerDomain, room(n))));
    assert_eq!(etas, [held(1), held(2), held(3)], "each at the refill of its own domain");
}

#[test]
fn what_the_ca_closed_holds_its_key_whatever_is_configured() {
    let until = NOW + Duration::from_secs(700);
    let (domain, account) = (LimitName::CertificatesPerDomain, LimitName::OrdersPerAccount);
    let closed = |limit: LimitName, key: &str| {
        Spent::from([((limit, key.to_owned()), Bucket { tat: until, open: 0, closed_until: until })])
    };
    let (mut without, mut larger) = (limits(), limits());
    without.remove(&domain);
    larger.insert(domain, Limit { burst: 900, per_secs: 900 });
    let names = ["a.shut.example", "b.shut.example", "www.free.example"];
    let all: Vec<Waiting> = (0..3).map(|n| waiting(n, 1, Lane::Bulk, NOW, names[usize::from(n)])).collect();
    for limits in [&without, &larger] {
        let d = dispatch(&all, limits, &closed(domain, "shut.example"), 0, NOW);
        assert_eq!(d.grants, [all[2].order_id.clone()], "{limits:?}");
        let held: Vec<_> = d.places.iter().map(|p| p.held.map(|(limit, _)| limit)).collect();
        assert_eq!(held, [Some(domain); 2], "{limits:?}");
        assert!(d.places.iter().all(|p| p.eta >= until), "{:?}", d.places);
    }
    // One that is only used up holds nobody once it is said not to be there.
    let used = Spent::from([((domain, "shut.example".to_owned()), Bucket { tat: until, open: 5, ..Bucket::default() })]);
    assert_eq!(dispatch(&all, &without, &used, 0, NOW).grants.len(), 3);
    without.remove(&account);
    let d = dispatch(&all, &without, &closed(account, ACCOUNT), 0, NOW);
    assert_eq!((d.grants.len(), d.next_at()), (0, Some(until)));
}

/// Whoever else has more than enough to do, each lane has its turns: five, three and two of ten.
#[test]
fn no_lane_takes_the_share_of_another() {
    let lanes = [Lane::Renewal, Lane::Single, Lane::Bulk];
    let all: Vec<Waiting> =
        (0..300).map(|n| alone(n, u8::try_from(n % 4).unwrap(), lanes[usize::from(n / 100)], NOW)).collect();
    let lane_of: HashMap<&OrderId, Lane> = all.iter().map(|w| (&w.order_id, w.lane)).collect();
    for turn in 0..10 {
        let d = dispatch(&all, &limits(), &Spent::new(), turn, NOW);
        let served: Vec<Lane> = d.grants.iter().chain(d.places.iter().map(|p| &p.order_id)).map(|id| lane_of[id]).collect();
        for (n, ten) in served[..150].windows(10).enumerate() {
            let share = lanes.map(|lane| ten.iter().filter(|l| **l == lane).count());
            assert_eq!(share, [5, 3, 2], "from turn {turn} + {n}: {ten:?}");
        }
        let bulk: Vec<usize> = (0..150).filter(|n| served[*n] == Lane::Bulk).collect();
        assert!(
            bulk[0] <= 5 && bulk.windows(2).all(|w| w[1] - w[0] <= 6),
            "an import is never long without a turn: {bulk:?}"
        );
    }
}

#[test]
fn a_claim_made_by_hand_comes_before_an_import_under_the_same_domain() {
    let mut all: Vec<Waiting> = (0..6).map(|n| waiting(n, 1, Lane::Bulk, NOW, &format!("n{n}.crowded.example"))).collect();
    all.push(waiting(6, 1, Lane::Single, NOW, "by-hand.crowded.example"));
    let d = dispatch(&all, &limits(), &Spent::new(), 0, NOW);
    assert_eq!(d.grants[0], all[6].order_id);
    assert_eq!(d.grants.len(), 3);
}

/// A queue as long as an import can be, under a thousand domains that are all crowded: one walk places everybody.
#[test]
fn a_hundred_thousand_orders_are_walked_in_one_go() {
    let all: Vec<Waiting> = (0..100_000_u32)
        .map(|n| {
            let mut drawn = [0; 10];
            drawn[6..].copy_from_slice(&n.to_be_bytes());
            Waiting {
                order_id: OrderId::mint(Moment::from_secs(i64::from(n)), drawn),
                ..waiting(0, u8::try_from(n % 7).unwrap(), Lane::Bulk, NOW, &format!("n{n}.d{}.example", n % 1_000))
            }
        })
        .collect();
    let d = dispatch(&all, &crate::model::limits::usual(), &Spent::new(), 0, NOW);
    assert_eq!((d.grants.len(), d.places.len()), (300, 99_700));
    let last = d.places.last().unwrap().eta.since(NOW).as_secs();
    // A hundred names a domain: fifty at once as far as the account allows, the rest one in 202 minutes.
    assert!((99_700 * 36..99_700 * 36 + 60 * 12_096).contains(&last), "{last}");
}

/// The CA's own counting of all keys.
#[derive(Default)]
struct Counting(HashMap<(LimitName, String), Moment>);

impl Counting {
    fn takes(&mut self, limits: &Limits, name: &Hostname, at: Moment) -> bool {
        spends(limits, name).fold(true, |all, (limit, numbers, key)| {
            let tat = self.0.entry((limit, key.to_owned())).or_insert(Moment::from_micros(i64::MIN));
            let ok = Bucket { tat: *tat, ..Bucket::default() }.earliest(numbers, at) <= at;
            *tat = settle(*tat, at, numbers);
            all && ok
        })
    }
}

fn any_queue() -> impl Strategy<Value = Vec<Waiting>> {
    let one = (0_u8..4, 0_usize..3, 0_i64..400, 0_u8..5, 0_u8..3, 0_u64..40, 0_u64..12);
    proptest::collection::vec(one, 0..80).prop_map(|kinds| {
        let mut served: BTreeMap<(u8, usize), u64> = BTreeMap::new();
        let each = kinds.into_iter().enumerate().map(|(i, (tenant, lane, after, domain, label, turn, days))| {
            let name = format!("l{label}.d{domain}.example");
            // Half of them may go at once.
            let not_before = NOW + Duration::from_secs(u64::try_from((after - 200).max(0)).unwrap());
            let served = *served.entry((tenant, lane)).or_insert(turn);
            let lane = Lane::ALL[lane];
            let ends = if lane == Lane::Renewal { NOW + DAY * u32::try_from(days).unwrap() } else { Moment::NEVER };
            Waiting { served, ends, ..waiting(u16::try_from(i).unwrap(), tenant, lane, not_before, &name) }
        });
        each.collect()
    })
}

fn any_spent() -> impl Strategy<Value = Spent> {
    let rows = proptest::collection::vec((0_u8..5, 0_i64..2_000, 0_u32..3), 0..5);
    (rows, 0_i64..120, 0_u32..12).prop_map(|(rows, account, open)| {
        let after = |secs: i64| Moment::from_secs(NOW.secs() - 500 + secs);
        let mut spent: Spent = rows
            .into_iter()
            .map(|(d, tat, open)| {
                (
                    (LimitName::CertificatesPerDomain, format!("d{d}.example")),
                    Bucket { tat: after(tat), open, ..Bucket::default() },
                )
            })
            .collect();
        spent.insert(
            (LimitName::OrdersPerAccount, ACCOUNT.to_owned()),
            Bucket { tat: after(500 + account), open, ..Bucket::default() },
        );
        spent
    })
}

proptest! {
    #[test]
    fn every_order_is_granted_or_placed_once_and_nothing_beyond_any_bucket(
        all in any_queue(), spent in any_spent(), turn in 0_u64..50,
    ) {
        let limits = limits();
        let d = dispatch(&all, &limits, &spent, turn, NOW);
        let by_id: HashMap<&OrderId, &Waiting> = all.iter().map(|w| (&w.order_id, w)).collect();
        let mut granted: HashMap<(LimitName, String), u32> = HashMap::new();
        for id in &d.grants {
            prop_assert!(by_id[id].not_before <= NOW);
            for (limit, _, key) in spends(&limits, &by_id[id].name) {
                *granted.entry((limit, key.to_owned())).or_default() += 1;
            }
        }
        for ((limit, key), n) in granted {
            let bucket = spent.get(&(limit, key.clone())).copied().unwrap_or_default();
            prop_assert!(n <= bucket.available(limits[&limit], NOW), "{n} of {limit} for {key}");
        }
        let mut seen: Vec<_> = d.grants.iter().chain(d.places.iter().map(|p| &p.order_id)).collect();
        seen.sort();
        let want: Vec<_> = all.iter().map(|w| &w.order_id).collect();
        prop_assert_eq!(seen, want);
        prop_assert!(d.places.windows(2).all(|w| w[0].eta <= w[1].eta && w[0].position < w[1].position));
        for p in &d.places {
            prop_assert!(p.eta > NOW && p.eta >= by_id[&p.order_id].not_before);
            if let Some((_, room)) = p.held {
                prop_assert!(room <= p.eta);
            }
        }
    }

    /// Whenever one is served, none that waits ends on an earlier day of the week to come.
    #[test]
    fn no_renewal_waits_for_one_that_ends_on_a_later_day(ends in proptest::collection::vec((0_u8..4, 0_u64..300), 1..60)) {
        let all: Vec<Waiting> = (0..).zip(&ends).map(|(n, (tenant, hours))| renewal(n, *tenant, HOUR * u32::try_from(*hours).unwrap())).collect();
        let d = dispatch(&all, &limits(), &Spent::new(), 0, NOW);
        let day = |w: &Waiting, at: Moment| w.ends.since(at).as_secs().div_ceil(86_400).min(8);
        let mut left: HashMap<&OrderId, &Waiting> = all.iter().map(|w| (&w.order_id, w)).collect();
        let turns = d.grants.iter().map(|id| (id, NOW)).chain(d.places.iter().map(|p| (&p.order_id, p.eta)));
        for (id, at) in turns {
            let one = left.remove(id).unwrap();
            prop_assert!(left.values().all(|other| day(one, at) <= day(other, at)));
        }
        prop_assert!(left.is_empty());
    }

    /// The told time is the time, where a registered domain is one tenant's.
    #[test]
    fn what_was_foretold_happens(mut all in any_queue(), turn in 0_u64..50) {
        for (n, w) in all.iter_mut().enumerate() {
            w.not_before = NOW;
            w.name = Hostname::trusted(&format!("n{n}.{}-{}.example", &w.tenant_id.as_str()[30..], w.lane));
        }
        let (late, total) = played(all, turn)?;
        prop_assert_eq!(late, 0, "of {}", total);
    }

    /// Where tenants and lanes share domains and names, and some come later, they may change places when a round is played anew;
    /// but everybody gets a grant, and no call is made that the CA would refuse.
    #[test]
    fn whoever_shares_a_domain_is_served_within_its_limits(all in any_queue(), turn in 0_u64..50) {
        played(all, turn)?;
    }
}

/// One queue can be bad luck whole; over many, what was told is what happens to most.
#[test]
fn few_of_those_who_share_a_domain_are_granted_at_another_time_than_told() {
    let mut runner = TestRunner::deterministic();
    let (mut late, mut total) = (0, 0);
    for _ in 0..300 {
        let (all, turn) = (any_queue(), 0_u64..50).new_tree(&mut runner).unwrap().current();
        let (others, all) = played(all, turn).unwrap();
        (late, total) = (late + others, total + all);
    }
    assert!(late * 4 <= total, "{late} of {total} were granted at another time");
}

/// Rounds are run when the one before said, and calls are answered at once: how many were granted at another time than the first
/// round said, and how many there were.
fn played(mut all: Vec<Waiting>, mut turn: u64) -> Result<(usize, usize), TestCaseError> {
    let limits = limits();
    let mut spent = Spent::new();
    let first = dispatch(&all, &limits, &spent, turn, NOW);
    let at_once = first.grants.iter().map(|id| (id.clone(), NOW));
    let told: HashMap<OrderId, Moment> = at_once.chain(first.places.iter().map(|p| (p.order_id.clone(), p.eta))).collect();
    let mut ca = Counting::default();
    let (mut now, mut late, total) = (NOW, 0, all.len());
    while !all.is_empty() {
        let d = dispatch(&all, &limits, &spent, turn, now);
        let gone: HashSet<&OrderId> = d.grants.iter().collect();
        for id in &d.grants {
            let w = all.iter().find(|w| w.order_id == *id).unwrap().clone();
            prop_assert!(ca.takes(&limits, &w.name, now), "the CA would refuse");
            for (limit, numbers, key) in spends(&limits, &w.name) {
                let row = spent.entry((limit, key.to_owned())).or_default();
                row.tat = settle(row.tat, now, numbers);
            }
            turn += 1;
            for other in all.iter_mut().filter(|o| o.tenant_id == w.tenant_id && o.lane == w.lane) {
                other.served = turn;
            }
            late += usize::from(told[id] != now);
        }
        all.retain(|w| !gone.contains(&w.order_id));
        let Some(next) = d.next_at() else { break };
        now = next;
    }
    prop_assert!(all.is_empty());
    Ok((late, total))
}
