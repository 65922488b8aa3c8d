//! The course of a year as bars in a terminal: the life that certificates have left, and renewals.

use super::report::DayPoint;

/// The length of the longest bar.
const BAR: usize = 50;
/// At most so many lines.
const LINES: usize = 27;

/// One line for some days: names by the life that is left of their certificate, and renewals in that time.
pub fn year_terminal(course: &[DayPoint]) -> Vec<String> {
    let every = course.len().div_ceil(LINES).max(1);
    let most = course.iter().map(|day| day.by_life.iter().sum()).max().unwrap_or(0).max(1);
    let mut lines = vec![format!(
        "{:>7} {:<BAR$} {:>9}",
        "", "# over half of its life left, + under half, - under a quarter, ! ended", "renewals"
    )];
    for days in course.chunks(every) {
        let Some(last) = days.last() else { continue };
        let bar: String = ['#', '+', '-', '!']
            .iter()
            .zip(last.by_life)
            // Whatever there is of a kind is seen.
            .map(|(sign, n)| sign.to_string().repeat(if n == 0 { 0 } else { (n * BAR / most).max(1) }))
            .collect();
        let renewals: u64 = days.iter().map(|day| day.renewals).sum();
        lines.push(format!("day {:>3} {bar:<BAR$} {renewals:>9}", last.day));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_seen_and_the_lines_are_few() {
        let course: Vec<DayPoint> =
            (1..=365).map(|day| DayPoint { day, renewals: 2, by_life: [900, 90, 9, usize::from(day == 365)] }).collect();
        let lines = year_terminal(&course);
        assert!(lines.len() <= LINES + 2, "{}", lines.len());
        let last = lines.last().unwrap();
        assert!(last.starts_with("day 365 ####") && last.contains("+-!"), "{last}");
        let renewals: u64 = lines[1..].iter().map(|line| line.split(' ').next_back().unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(renewals, 730);
        assert_eq!(year_terminal(&[]).len(), 1);
    }
}
