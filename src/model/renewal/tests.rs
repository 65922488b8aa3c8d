use std::time::Duration;

use proptest::prelude::*;

use super::schedule::{Advice, Schedule, ask_again_in, first, heard, unheard};
use super::window::{Validity, Window, is_meant, latest, own_moment};
use crate::model::id::CertificateId;
use crate::model::moment::Moment;

const DAY: u64 = 86_400;
const ISSUED: Moment = Moment::from_secs(1_800_000_000);

fn days(n: u64) -> Duration {
    Duration::from_secs(n * DAY)
}

fn of(life: Duration) -> Validity {
    Validity { not_before: ISSUED, not_after: ISSUED + life }
}

fn id(n: u8) -> CertificateId {
    CertificateId::mint(ISSUED, [n; 10])
}

fn advice(start: Moment, end: Moment) -> Advice {
    Advice { window: Window { start, end }, explanation: None, retry_after: Some(Duration::from_secs(21_600)) }
}

#[test]
fn a_third_of_a_long_life_is_left_and_half_of_a_short_one() {
    for (life, from, until) in [(90, 55.5, 60.0), (45, 27.75, 30.0), (6, 2.7, 3.0)] {
        let mut seen = Vec::new();
        for n in 0..=255_u8 {
            let at = own_moment(&id(n), of(days(life))).since(ISSUED).as_secs_f64() / 86_400.0;
            assert!(at > from - 0.001 && at <= until, "{life} days: {at}");
            seen.push(at);
        }
        seen.sort_by(f64::total_cmp);
        // Those issued together are spread: no quarter of the time has more than a third of them.
        let quarter = (until - from) / 4.0;
        for part in [0.0, 1.0, 2.0, 3.0] {
            let begin = from + part * quarter;
            let many = seen.iter().filter(|at| **at > begin && **at <= begin + quarter).count();
            assert!((40..=90).contains(&many), "{many} of 256 in one quarter of {life} days");
        }
    }
}

#[test]
fn a_moment_is_drawn_in_the_window_and_kept_while_the_window_stays() {
    let life = of(days(90));
    let window = advice(ISSUED + days(60), ISSUED + days(62));
    let now = ISSUED + days(1);
    let before = first(&id(1), life, 5, now);
    let drawn = heard(&before, &id(1), life, &window, u32::MAX / 2, now);
    assert_eq!(drawn.at.since(ISSUED + days(61)), Duration::ZERO);
    assert!((ISSUED + days(61)).since(drawn.at) < Duration::from_secs(1), "the middle of it");
    assert_eq!(drawn.poll_at, now + Duration::from_secs(21_600));
    for draw in [0, 7, u32::MAX] {
        let again = heard(&drawn, &id(1), life, &window, draw, now + days(2));
        assert_eq!((again.at, again.window), (drawn.at, drawn.window), "a poll draws nothing anew");
    }
    let moved = heard(&drawn, &id(1), life, &advice(ISSUED + days(10), ISSUED + days(12)), 0, now);
    assert_eq!(moved.at, ISSUED + days(10));
}

/// Drawn by a clock that ran ahead: for it the window was over, or the moment far behind its end.
#[test]
fn b53_a_moment_that_a_clock_ahead_drew_is_drawn_anew() {
    let life = of(days(90));
    let window = advice(ISSUED + days(60), ISSUED + days(62));
    let now = ISSUED + days(30);
    let before = heard(&first(&id(1), life, 5, ISSUED), &id(1), life, &window, 77, now);
    let astray = heard(&first(&id(1), life, 5, ISSUED), &id(1), life, &window, u32::MAX / 2, now + days(40));
    assert!(astray.at >= ISSUED + days(70), "{}", astray.at);
    let right = heard(&astray, &id(1), life, &window, 77, now);
    assert_eq!((right.at, right.poll_at), (before.at, now + Duration::from_secs(21_600)));
    // A moment that is over is not drawn anew by whoever comes late.
    for (late, at) in [(61, before.at), (63, before.at)] {
        assert_eq!(heard(&before, &id(1), life, &window, 1, ISSUED + days(late)).at, at);
    }
}

#[test]
fn b43_what_cannot_be_meant_leaves_the_life_to_decide() {
    let life = of(days(90));
    let now = ISSUED + days(30);
    let known = heard(&first(&id(1), life, 5, now), &id(1), life, &advice(ISSUED + days(40), ISSUED + days(42)), 1, now);
    for (start, end) in [
        (ISSUED + days(62), ISSUED + days(60)),
        (ISSUED + days(60), ISSUED + days(60)),
        (ISSUED + days(90), ISSUED + days(95)),
        (ISSUED + days(4000), ISSUED + days(4001)),
        (Moment::NEVER, Moment::NEVER),
    ] {
        let after = heard(&known, &id(1), life, &advice(start, end), 9, now);
        assert_eq!((after.at, after.window), (own_moment(&id(1), life), None), "{start} to {end}");
        assert!(after.said.unwrap().contains("cannot be meant"));
    }
}

#[test]
fn b43_a_window_that_is_over_means_now_and_never_a_loop() {
    let life = of(days(90));
    let now = ISSUED + days(30);
    let over = advice(ISSUED - days(900), ISSUED + days(29));
    let mut ats = Vec::new();
    for draw in [0, u32::MAX / 2, u32::MAX] {
        let at = heard(&first(&id(1), life, 5, now), &id(1), life, &over, draw, now).at;
        assert!(at >= now && at <= now + Duration::from_secs(3_900), "{at}");
        ats.push(at);
    }
    assert!(ats[0] < ats[1] && ats[1] < ats[2], "a crowd is spread over an hour");
    // A CA that says so of every certificate from its first day on is asked for one a day.
    let young = heard(&first(&id(2), life, 5, ISSUED), &id(2), life, &advice(ISSUED - days(2), ISSUED - days(1)), 0, ISSUED);
    assert_eq!(young.at, ISSUED + days(1));
}

#[test]
fn an_ari_that_is_ill_is_asked_more_and_more_seldom_and_changes_nothing() {
    let life = of(days(90));
    let mut now = ISSUED + days(1);
    let window = advice(ISSUED + days(20), ISSUED + days(22));
    let mut known = heard(&first(&id(1), life, 5, now), &id(1), life, &window, 1, now);
    let at = known.at;
    let mut waits = Vec::new();
    for _ in 0..12 {
        known = unheard(&known, None, "HTTP 500", now);
        waits.push(known.poll_at.since(now).as_secs());
        now = known.poll_at;
        assert_eq!((known.at, known.window), (at, Some(window.window)));
    }
    assert_eq!(&waits[..5], [600, 1_200, 2_400, 4_800, 9_600]);
    assert_eq!(*waits.last().unwrap(), DAY);
    assert_eq!(ask_again_in(i64::MAX), days(1));
    let told = |secs| unheard(&known, Some(Duration::from_secs(secs)), "", now).poll_at.since(now).as_secs();
    assert_eq!([told(1), told(3_600), told(10 * DAY)], [60, 3_600, DAY], "as told, within bounds");
}

prop_compose! {
    fn any_moment()(micros in prop_oneof![any::<i64>(), -10_000_000_000_000..20_000_000_000_000_i64]) -> Moment {
        Moment::from_micros(ISSUED.micros().saturating_add(micros))
    }
}

proptest! {
    /// Whatever windows come, in whatever order: the moment is never before the certificate is young no more, never later than the last
    /// tenth of its life (unless that is over already), and a poll lies ahead, within a day.
    #[test]
    fn no_window_moves_a_renewal_out_of_its_bounds(
        life_secs in 60..40_000_000_u64, steps in proptest::collection::vec((any_moment(), any_moment(), any::<u32>(), any::<Option<u32>>(), 0..400_000_u64), 1..20),
        n: u8,
    ) {
        let life = of(Duration::from_secs(life_secs));
        let mut now = ISSUED;
        let mut known: Schedule = first(&id(n), life, 3, now);
        for (start, end, draw, told, wait) in steps {
            now = now + Duration::from_secs(wait);
            let told = told.map(|secs| Duration::from_secs(u64::from(secs)));
            let advice = Advice { window: Window { start, end }, explanation: None, retry_after: told };
            let next = heard(&known, &id(n), life, &advice, draw, now);
            prop_assert!(next.at >= ISSUED + life.lifetime() / 90, "{}", next.at);
            prop_assert!(next.at <= latest(life), "{} is after {}", next.at, latest(life));
            prop_assert!(next.poll_at >= now + Duration::from_secs(60) && next.poll_at <= now + days(1));
            if next.window == known.window && next.window.is_some() {
                prop_assert_eq!(next.at, known.at, "not drawn anew");
            }
            if is_meant(advice.window, life, now) && end > now {
                prop_assert!(next.at <= end || next.at == ISSUED + life.lifetime() / 90);
            }
            known = next;
        }
    }
}

#[test]
fn what_is_at_risk_is_told_with_its_dates() {
    use super::words::{Told, at_risk, planned};
    use crate::model::domain::TieState;
    use crate::model::evidence::{Check, Evidence, Finding};
    use crate::model::reason::Reason;
    let life = of(days(90));
    let schedule = first(&id(1), life, 5, ISSUED);
    let evidence = |check, reason| {
        let finding = Finding::bare(check, reason);
        vec![Evidence { finding, looked_at: ISSUED }]
    };
    let told = Told {
        schedule: &schedule,
        tie: TieState::Held,
        evidence: &[],
        failures: 0,
        not_after: life.not_after,
        now: ISSUED + days(1),
    };
    assert_eq!(at_risk(&told), None);
    assert!(planned(&told).contains(&schedule.at.in_words()));
    let away = evidence(Check::Routing, Reason::CnamePointsElsewhere);
    let early = at_risk(&Told { evidence: &away, ..told }).unwrap();
    assert!(early.starts_with(&format!("Renewal will fail on {}", schedule.at.in_words())), "{early}");
    assert!(
        early.contains(Reason::CnamePointsElsewhere.sentence()) && early.contains(&life.not_after.in_words()),
        "{early}"
    );
    let late = at_risk(&Told { evidence: &away, now: ISSUED + days(70), ..told }).unwrap();
    assert!(late.starts_with("The renewal that was due on"), "{late}");
    let lost = at_risk(&Told { tie: TieState::Lost, ..told }).unwrap();
    assert!(lost.contains("not renewed while nothing ties"), "{lost}");
    // Silence is no risk by itself: it may be over before the renewal is due.
    let silent = evidence(Check::Caa, Reason::CaaLookupFailed);
    assert_eq!(at_risk(&Told { evidence: &silent, ..told }), None);
    assert!(at_risk(&Told { failures: 2, ..told }).unwrap().contains("followed by others"));
}
