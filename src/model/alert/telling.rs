//! Whether something about an alert is still worth telling to one place.
//!
//! An alert has a *topic*: one certificate of one domain, or one condition of the platform. Whatever happens to it (it is told
//! again as it grew, a tighter threshold takes its place, its name is let go of), a place is told by two facts at the moment of
//! sending: what is open now, and what the place was told last. So nobody hears of what is over, nobody hears the same twice, and
//! whoever was told that something began is told that it ended.

/// What an event tells of an alert, as things stand now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// Nothing of any alert.
    Else,
    /// That something began, or is worse.
    Begins {
        /// It is open, and nothing later was said of it.
        latest: bool,
    },
    /// That it is over.
    Ends {
        /// It is open again.
        open: bool,
    },
    /// Of an alert that is kept no longer.
    Forgotten,
}

/// What is known of the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// It was told, or may have been, that this is open.
    pub told: bool,
    /// It wants to hear of beginnings at all.
    pub hears_beginnings: bool,
}

/// Whether the event is told to the place.
pub fn worth_telling(says: Says, to: Listener) -> bool {
    match says {
        Says::Else => true,
        Says::Begins { latest } => latest,
        // Whoever wants ends alone gets all of them; whoever was not told of this beginning waits for no end.
        Says::Ends { open } => !open && (to.told || !to.hears_beginnings),
        Says::Forgotten => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whoever_wants_ends_alone_gets_them() {
        let ends = Says::Ends { open: false };
        assert!(worth_telling(ends, Listener { told: false, hears_beginnings: false }));
        assert!(!worth_telling(ends, Listener { told: false, hears_beginnings: true }));
        assert!(worth_telling(Says::Else, Listener { told: false, hears_beginnings: true }));
        assert!(!worth_telling(Says::Forgotten, Listener { told: true, hears_beginnings: true }));
    }

    /// What happens to one topic and one place that hears of it.
    #[derive(Clone, Copy, Debug)]
    enum Happens {
        /// It begins, or is told again: grown, tighter.
        Worse,
        Over,
        /// The place is asked to take the first thing that waits: it does, it refuses, or nobody knows.
        Takes,
        Refuses,
        Silent,
        /// What waits is given up.
        GivenUp,
    }

    fn happens() -> impl Strategy<Value = Happens> {
        prop_oneof![
            3 => Just(Happens::Worse),
            2 => Just(Happens::Over),
            3 => Just(Happens::Takes),
            1 => Just(Happens::Refuses),
            1 => Just(Happens::Silent),
            1 => Just(Happens::GivenUp),
        ]
    }

    proptest! {
        #[test]
        fn in_the_end_a_place_believes_what_is_true_of_what_it_was_told(story in proptest::collection::vec(happens(), 1..60)) {
            // Events are numbered; `true` begins, `false` ends.
            let (mut log, mut waiting): (Vec<bool>, Vec<usize>) = (Vec::new(), Vec::new());
            let (mut open, mut told): (Option<usize>, Option<usize>) = (None, None);
            // What the receiver saw: whether the last that it got of this was a beginning.
            let (mut believes, mut heard, mut end_given_up) = (false, Vec::new(), false);
            let mut step = |happens: Happens, log: &mut Vec<bool>, waiting: &mut Vec<usize>| {
                match happens {
                    Happens::Worse => { open = Some(log.len()); waiting.push(log.len()); log.push(true) }
                    Happens::Over if open.is_some() => { open = None; waiting.push(log.len()); log.push(false) }
                    Happens::Over => {}
                    _ => {
                        while let Some(first) = waiting.first().copied() {
                            let says = if log[first] {
                                Says::Begins { latest: open == Some(first) }
                            } else {
                                Says::Ends { open: open.is_some() }
                            };
                            if !worth_telling(says, Listener { told: told.is_some(), hears_beginnings: true }) {
                                waiting.remove(0);
                                continue;
                            }
                            let arrives = matches!(happens, Happens::Takes | Happens::Silent);
                            if arrives {
                                believes = log[first];
                                heard.push(first);
                            }
                            // What may have arrived is held for told.
                            match (log[first], arrives) {
                                (true, true) => told = Some(first),
                                (false, _) if matches!(happens, Happens::Takes) => told = None,
                                _ => {}
                            }
                            end_given_up = !log[first] && matches!(happens, Happens::GivenUp);
                            if matches!(happens, Happens::Takes | Happens::GivenUp) {
                                waiting.remove(0);
                            }
                            break;
                        }
                    }
                }
                (open.is_some(), believes, end_given_up)
            };
            for happened in story {
                step(happened, &mut log, &mut waiting);
            }
            let mut end = (false, false, false);
            for _ in 0..200 {
                end = step(Happens::Takes, &mut log, &mut waiting);
            }
            prop_assert!(waiting.is_empty());
            // Nobody is left believing that something is wrong which is not: an end that was given up is the one exception.
            let (is_open, believes, end_given_up) = end;
            prop_assert!(!believes || is_open || end_given_up, "{log:?}");
            let mut taken = heard.clone();
            taken.dedup();
            prop_assert!(taken.windows(2).all(|pair| pair[0] < pair[1]), "{heard:?}");
        }
    }
}
