//! Caps that no second breaks, and lanes that keep their promises.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::model::id::TenantId;
use crate::model::look::Lane;
use crate::model::moment::Moment;

const START: Moment = Moment::from_secs(1_800_000_000);

fn tenant(n: u8) -> Option<TenantId> {
    Some(TenantId::mint(START, [n; 10]))
}

fn request(lane: Lane, who: u8, caps: &[(&'static str, Cap)]) -> Request<&'static str> {
    Request { lane, tenant: tenant(who), caps: caps.to_vec() }
}

/// The most that lie within less than a second of each other.
fn in_a_second(times: &[Moment]) -> usize {
    times
        .iter()
        .map(|t| times.iter().filter(|u| **u >= *t && u.since(*t) < Duration::from_secs(1)).count())
        .max()
        .unwrap_or(0)
}

#[test]
fn a_backlog_goes_as_fast_as_its_cap_and_no_faster() {
    for n in [1_u32, 2, 3, 7, 10, 50, 200] {
        let mut traffic = Traffic::default();
        let caps = [("all", Cap::per_second(n))];
        let mut went = Vec::new();
        for _ in 0..n * 4 {
            let (_, entered) = traffic.enter(request(Lane::Bulk, 1, &caps), START);
            went.extend((entered == Entered::Now).then_some(START));
        }
        let mut now = START;
        while traffic.waiting(Lane::Bulk) > 0 {
            now = now + Duration::from_millis(1);
            went.extend(traffic.give(now).iter().map(|_| now));
            assert!(now.since(START) < Duration::from_secs(10), "{n}: {} still wait", traffic.waiting(Lane::Bulk));
        }
        assert!(in_a_second(&went) <= n as usize, "{n}: {}", in_a_second(&went));
        let took = now.since(START).as_secs_f64();
        assert!(took > 2.9, "{n}: four seconds' worth went in {took} s");
    }
}

#[test]
fn who_pressed_check_now_overtakes_any_backlog() {
    let mut traffic = Traffic::default();
    let caps = [("all", Cap::new(100, 16))];
    for n in 0..10_000_u32 {
        traffic.enter(request(Lane::Bulk, u8::try_from(n % 7).unwrap(), &caps), START);
        traffic.enter(request(Lane::Routine, u8::try_from(n % 5).unwrap(), &caps), START);
    }
    let (mine, entered) = traffic.enter(request(Lane::CheckNow, 99, &caps), START);
    assert!(matches!(entered, Entered::Waits(about) if about < Duration::from_secs(1)), "{entered:?}");
    let bulk = request(Lane::Bulk, 1, &caps);
    assert!(traffic.about(&bulk, START) > Duration::from_secs(60), "the others are told how long it really takes");
    // A place is free again: it goes to nobody else.
    traffic.leave(Lane::Bulk, 1);
    let now = START + Duration::from_millis(20);
    let went = traffic.give(now);
    let position = went.iter().position(|n| *n == mine);
    assert!(position.is_some_and(|p| p <= 1), "{position:?} of {}", went.len());
}

#[test]
fn every_lane_has_its_share_and_gives_away_what_it_does_not_use() {
    let mut traffic = Traffic::default();
    let caps = [("all", Cap::per_second(3))];
    for lane in Lane::ALL {
        for _ in 0..400 {
            traffic.enter(request(*lane, 1, &caps), START);
        }
    }
    let waiting = |t: &Traffic<&'static str>| Lane::ALL.iter().map(|l| t.waiting(*l)).collect::<Vec<_>>();
    let before = waiting(&traffic);
    let mut now = START;
    let mut given = 0;
    while given < 200 {
        now = now + Duration::from_millis(100);
        given += traffic.give(now).len();
    }
    let shares: Vec<usize> = before.iter().zip(waiting(&traffic)).map(|(b, a)| b - a).collect();
    assert_eq!(shares, [100, 60, 20, 20], "of {given}");
    // Alone, a lane has all turns.
    let mut alone = Traffic::default();
    for _ in 0..10 {
        alone.enter(request(Lane::Bulk, 1, &[("all", Cap::per_second(30))]), START);
    }
    assert_eq!(alone.waiting(Lane::Bulk), 0);
}

#[test]
fn tenants_of_one_lane_take_turns() {
    let mut traffic = Traffic::default();
    let caps = [("all", Cap::per_second(1))];
    let mut of = std::collections::HashMap::new();
    for n in 0..50 {
        of.insert(traffic.enter(request(Lane::Single, 1, &caps), START).0, 1);
        if n < 3 {
            of.insert(traffic.enter(request(Lane::Single, 2, &caps), START).0, 2);
        }
    }
    let mut order = Vec::new();
    let mut now = START;
    while order.len() < 8 {
        now = now + Duration::from_millis(500);
        order.extend(traffic.give(now).iter().map(|n| of[n]));
    }
    assert_eq!(order.iter().filter(|who| **who == 2).count(), 3, "{order:?}");
    assert_eq!(order.windows(2).take(5).filter(|w| w[0] == w[1]).count(), 0, "{order:?}");
}

#[test]
fn a_full_zone_holds_up_nobody_else() {
    let mut traffic = Traffic::default();
    let all = ("all", Cap::new(1_000, 1_000));
    let victim = [all, ("victim", Cap::new(5, 2))];
    for _ in 0..500 {
        traffic.enter(request(Lane::CheckNow, 1, &victim), START);
    }
    let (_, other) = traffic.enter(request(Lane::Bulk, 2, &[("free", Cap::new(5, 2))]), START);
    assert_eq!(other, Entered::Now);
    let (number, other) = traffic.enter(request(Lane::Bulk, 2, &[all, ("other", Cap::new(5, 2))]), START);
    assert!(other == Entered::Now || traffic.give(START).contains(&number));
}

#[test]
fn what_is_idle_is_forgotten() {
    let mut traffic = Traffic::default();
    let mut now = START;
    for n in 0..100_000_u32 {
        now = now + Duration::from_millis(1);
        let (number, entered) =
            traffic.enter(Request { lane: Lane::Bulk, tenant: None, caps: vec![(n, Cap::new(5, 5))] }, now);
        assert_eq!(entered, Entered::Now);
        traffic.leave(Lane::Bulk, number);
    }
    assert!(traffic.rows() < 3_000, "{} rows", traffic.rows());
}

#[test]
fn another_piece_of_the_same_counts_as_one_more() {
    let mut traffic = Traffic::default();
    let caps = [("server", Cap::new(3, 1))];
    let (number, _) = traffic.enter(request(Lane::Single, 1, &caps), START);
    // Three a second: one at once, the others half a second apart.
    assert!(!traffic.again(number, START));
    assert!(traffic.again(number, START + Duration::from_millis(500)));
    let (other, entered) = traffic.enter(request(Lane::Single, 1, &caps), START + Duration::from_millis(600));
    assert!(matches!(entered, Entered::Waits(_)));
    assert!(!traffic.again(number, START + Duration::from_secs(9)), "somebody waits");
    traffic.leave(Lane::Single, number);
    assert_eq!(traffic.give(START + Duration::from_secs(9)), [other]);
    assert!(!traffic.again(number, START + Duration::from_secs(20)), "it has left");
}

/// What happens to a world of three zones and two servers.
#[derive(Clone, Debug)]
enum Step {
    Enter { lane: usize, tenant: u8, zone: usize, server: usize },
    Leave(usize),
    Again(usize),
    Pass(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4_usize, 0..4_u8, 0..3_usize, 0..2_usize)
            .prop_map(|(lane, tenant, zone, server)| Step::Enter { lane, tenant, zone, server }),
        2 => any::<usize>().prop_map(Step::Leave),
        1 => any::<usize>().prop_map(Step::Again),
        2 => (0..400_u16).prop_map(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn no_second_and_no_moment_breaks_a_cap_and_everybody_goes_in_the_end(steps in proptest::collection::vec(step(), 1..200)) {
        const ZONES: [&str; 3] = ["a", "b", "c"];
        const SERVERS: [&str; 2] = ["s1", "s2"];
        let (all, zone_cap, server_cap) = (Cap::new(20, 6), Cap::new(4, 3), Cap::new(7, 4));
        let mut traffic: Traffic<&'static str> = Traffic::default();
        let mut asked: std::collections::HashMap<u64, (Lane, &str, &str)> = std::collections::HashMap::new();
        let mut running: Vec<u64> = Vec::new();
        let mut went: Vec<(Moment, u64)> = Vec::new();
        let mut now = START;
        let check = |running: &[u64], asked: &std::collections::HashMap<u64, (Lane, &str, &str)>| {
            assert!(running.len() <= 6);
            for zone in ZONES {
                assert!(running.iter().filter(|n| asked[n].1 == zone).count() <= 3);
            }
            for server in SERVERS {
                assert!(running.iter().filter(|n| asked[n].2 == server).count() <= 4);
            }
        };
        for step in steps {
            match step {
                Step::Enter { lane, tenant: who, zone, server } => {
                    let caps = [("all", all), (ZONES[zone], zone_cap), (SERVERS[server], server_cap)];
                    let (number, entered) = traffic.enter(request(Lane::ALL[lane], who, &caps), now);
                    asked.insert(number, (Lane::ALL[lane], ZONES[zone], SERVERS[server]));
                    if entered == Entered::Now {
                        running.push(number);
                        went.push((now, number));
                    }
                }
                Step::Leave(n) if !running.is_empty() => {
                    let number = running.remove(n % running.len());
                    traffic.leave(asked[&number].0, number);
                }
                Step::Again(n) if !running.is_empty() => {
                    let number = running[n % running.len()];
                    if traffic.again(number, now) {
                        went.push((now, number));
                    }
                }
                Step::Pass(millis) => now = now + Duration::from_millis(u64::from(millis)),
                Step::Leave(_) | Step::Again(_) => {}
            }
            for number in traffic.give(now) {
                running.push(number);
                went.push((now, number));
            }
            check(&running, &asked);
        }
        // Whoever is left goes, once those before are through.
        for _ in 0..2_000 {
            for number in running.drain(..) {
                traffic.leave(asked[&number].0, number);
            }
            now = now + Duration::from_millis(50);
            for number in traffic.give(now) {
                running.push(number);
                went.push((now, number));
            }
            if running.is_empty() && Lane::ALL.iter().all(|l| traffic.waiting(*l) == 0) {
                break;
            }
        }
        prop_assert!(Lane::ALL.iter().all(|l| traffic.waiting(*l) == 0));
        let of = |pick: &dyn Fn(&(Lane, &str, &str)) -> bool| -> Vec<Moment> {
            went.iter().filter(|(_, n)| pick(&asked[n])).map(|(at, _)| *at).collect()
        };
        prop_assert!(in_a_second(&of(&|_| true)) <= 20);
        for zone in ZONES {
            prop_assert!(in_a_second(&of(&|a| a.1 == zone)) <= 4);
        }
        for server in SERVERS {
            prop_assert!(in_a_second(&of(&|a| a.2 == server)) <= 7);
        }
    }
}
