//! The course of an import as a picture: for a terminal, and as an SVG file.

use std::fmt::Write as _;

use super::report::HourPoint;

/// The length of the longest bar in a terminal.
const BAR: usize = 60;
/// At most so many bars.
const BARS: usize = 24;
/// The size of the SVG, and the room for its axes.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const MARGIN: f64 = 56.0;

/// Certificates over time as bars, one line each.
pub fn terminal(hours: &[HourPoint], total: usize) -> Vec<String> {
    let every = hours.len().div_ceil(BARS).max(1);
    let picked = hours.iter().enumerate().filter(|(n, _)| (n + 1) % every == 0 || n + 1 == hours.len());
    picked
        .map(|(_, point)| {
            let bar = "#".repeat(point.certificates * BAR / total.max(1));
            format!("{:>5} h {:<BAR$} {:>7} served, {:>7} waiting", point.hour, bar, point.certificates, point.waiting)
        })
        .collect()
}

/// The same as an SVG document: names served, and orders that wait.
pub fn svg(hours: &[HourPoint], total: usize) -> String {
    let last = hours.last().map_or(1, |point| point.hour.max(1));
    let x = |hour: u64| MARGIN + (WIDTH - 2.0 * MARGIN) * ratio(hour, last);
    let y = |count: u64| HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * ratio(count, total.max(1) as u64);
    let line = |of: &dyn Fn(&HourPoint) -> u64| {
        let points = hours.iter().map(|point| format!("{:.1},{:.1}", x(point.hour), y(of(point))));
        points.collect::<Vec<_>>().join(" ")
    };
    let served = line(&|point| point.certificates as u64);
    let waiting = line(&|point| u64::try_from(point.waiting).unwrap_or(0));
    let (right, bottom, middle) = (WIDTH - MARGIN, HEIGHT - MARGIN, WIDTH / 2.0);
    let mut out = String::new();
    let _ = write!(
        out,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">
<title>{total} names: served and waiting by the hour</title>
<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>
<path d="M{MARGIN} {MARGIN}V{bottom}H{right}" fill="none" stroke="#555"/>
<polyline points="{waiting}" fill="none" stroke="#b45309" stroke-width="2" stroke-dasharray="6 4"/>
<polyline points="{served}" fill="none" stroke="#0f766e" stroke-width="2.5"/>
<text x="{MARGIN}" y="{}" text-anchor="end" dx="-8">{total}</text>
<text x="{MARGIN}" y="{bottom}" text-anchor="end" dx="-8">0</text>
<text x="{right}" y="{bottom}" text-anchor="end" dy="18">{last} h</text>
<text x="{middle}" y="24" text-anchor="middle"><tspan fill="#0f766e">served</tspan><tspan dx="16" fill="#b45309">waiting</tspan></text>
</svg>
"##,
        MARGIN + 4.0,
    );
    out
}

#[expect(clippy::cast_precision_loss, reason = "pixels of a chart")]
fn ratio(part: u64, whole: u64) -> f64 {
    part.min(whole) as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course() -> Vec<HourPoint> {
        (1..=100).map(|hour| HourPoint { hour, certificates: usize::try_from(hour).unwrap() * 10, waiting: 1_000 }).collect()
    }

    #[test]
    fn bars_grow_to_their_full_length_and_are_few() {
        let lines = terminal(&course(), 1_000);
        assert!(lines.len() <= BARS + 1, "{}", lines.len());
        assert!(lines[lines.len() - 1].contains(&"#".repeat(BAR)));
        assert!(terminal(&[], 0).is_empty());
    }

    #[test]
    fn the_svg_draws_every_hour_inside_its_frame() {
        let drawn = svg(&course(), 1_000);
        let points = drawn.split("points=\"").nth(2).unwrap().split('"').next().unwrap();
        let at: Vec<(f64, f64)> = points
            .split(' ')
            .map(|p| p.split_once(',').map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap())).unwrap())
            .collect();
        assert_eq!(at.len(), 100);
        assert!(at.iter().all(|(x, y)| (MARGIN..=WIDTH - MARGIN).contains(x) && (MARGIN..=HEIGHT - MARGIN).contains(y)));
        assert!(at.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 > w[1].1));
    }
}
