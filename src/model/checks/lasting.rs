//! Lengths of time in words.

/// A length of time in the largest whole unit that fits.
pub fn lasting(seconds: u64) -> String {
    let (n, unit) = match seconds {
        s if s >= 2 * 86_400 || s == 86_400 => (s / 86_400, "day"),
        s if s >= 2 * 3_600 => (s / 3_600, "hour"),
        s if s >= 60 => (s.div_ceil(60), "minute"),
        s => (s, "second"),
    };
    format!("{n} {unit}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::lasting;

    #[test]
    fn the_largest_unit_that_fits_is_taken() {
        for (seconds, words) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (59, "59 seconds"),
            (61, "2 minutes"),
            (7_199, "120 minutes"),
            (7_200, "2 hours"),
            (86_400, "1 day"),
            (200_000, "2 days"),
        ] {
            assert_eq!(lasting(seconds), words);
        }
    }
}
