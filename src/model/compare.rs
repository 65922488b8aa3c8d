//! Where two lines differ: what was expected next to what was seen, so that a reader need not hunt for the one wrong letter.
//!
//! Pure and bounded. Lines are compared word by word (a word ends at a blank, a quote, an equals sign, a colon or an arrow; a whole
//! name is one); of two words that stand in each other's place, only the part that differs is marked, as long as most of them is
//! alike. How to
//! get it wrong: mark single letters of two values that have nothing to do with each other, which reads as noise.

use std::ops::Range;

/// A part of a line, with whether the other line has it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The text.
    pub text: &'a str,
    /// Whether it differs from the other line.
    pub differs: bool,
}

/// Two lines, each cut where it differs from the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared<'a> {
    /// The expected line.
    pub expected: Vec<Part<'a>>,
    /// The line that was seen.
    pub seen: Vec<Part<'a>>,
}

impl Compared<'_> {
    /// Whether the seen line says all that was expected, whatever else it says.
    pub fn agrees(&self) -> bool {
        self.expected.iter().all(|part| !part.differs)
    }
}

/// More words than any line that people are shown; what comes after them is taken as one word.
const MOST_WORDS: usize = 160;

/// The same where the expected line begins with a record's type, which not every answer repeats.
pub fn compare_record<'a>(expected: &'a str, seen: &'a str) -> Compared<'a> {
    let kind = expected.find(' ').filter(|end| expected[..*end].bytes().all(|b| b.is_ascii_uppercase()));
    match kind {
        Some(end) if end > 0 && !seen.starts_with(&expected[..=end]) => {
            let mut both = compare(&expected[end + 1..], seen);
            both.expected.insert(0, Part { text: &expected[..=end], differs: false });
            both
        }
        _ => compare(expected, seen),
    }
}

/// Compares what was seen with what was expected.
pub fn compare<'a>(expected: &'a str, seen: &'a str) -> Compared<'a> {
    let (wanted, given) = (words(expected), words(seen));
    let kept = common(&wanted, &given);
    let mut left = Marks::new(expected);
    let mut right = Marks::new(seen);
    let (mut i, mut j) = (0, 0);
    for &(a, b) in kept.iter().chain([&(wanted.len(), given.len())]) {
        differ(&mut left, &mut right, &wanted[i..a], &given[j..b]);
        (i, j) = (a + 1, b + 1);
    }
    Compared { expected: left.parts(), seen: right.parts() }
}

/// A word with where it stands.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    at: usize,
}

impl Word<'_> {
    fn is_separator(self) -> bool {
        self.text.chars().all(separates)
    }

    fn range(self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }
}

fn separates(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '=' | ':' | '→' | ',' | ';')
}

fn words(line: &str) -> Vec<Word<'_>> {
    let mut all: Vec<Word<'_>> = Vec::new();
    let mut start = 0;
    let mut before: Option<char> = None;
    for (at, c) in line.char_indices() {
        // Separators stand alone, so that a quote is never taken for part of a name.
        let ends = before.is_some_and(|b| separates(b) || separates(c));
        if ends && all.len() + 1 < MOST_WORDS {
            all.push(Word { text: &line[start..at], at: start });
            start = at;
        }
        before = Some(c);
    }
    if start < line.len() {
        all.push(Word { text: &line[start..], at: start });
    }
    all
}

/// The longest list of words that both have in the same order, as pairs of their places.
fn common(a: &[Word<'_>], b: &[Word<'_>]) -> Vec<(usize, usize)> {
    let same = |i: usize, j: usize| a[i].text.eq_ignore_ascii_case(b[j].text);
    // A separator weighs less than a word: blanks alone make nothing alike.
    let weight = |i: usize| if a[i].is_separator() { 1 } else { 16 };
    let mut best = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            let both = if same(i, j) { best[i + 1][j + 1] + weight(i) } else { 0 };
            best[i][j] = both.max(best[i + 1][j]).max(best[i][j + 1]);
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut kept = Vec::new();
    while i < a.len() && j < b.len() {
        if same(i, j) && best[i][j] == best[i + 1][j + 1] + weight(i) {
            kept.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[i][j] == best[i + 1][j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    kept
}

/// Marks two runs of words that stand in each other's place.
fn differ(left: &mut Marks<'_>, right: &mut Marks<'_>, wanted: &[Word<'_>], given: &[Word<'_>]) {
    if let ([a], [b]) = (wanted, given)
        && let Some((ours, theirs)) = inner(a.text, b.text)
    {
        left.mark(a.at + ours.start..a.at + ours.end);
        right.mark(b.at + theirs.start..b.at + theirs.end);
        return;
    }
    for word in wanted {
        left.mark(word.range());
    }
    for word in given {
        right.mark(word.range());
    }
}

/// What differs inside two words that are mostly alike.
fn inner(a: &str, b: &str) -> Option<(Range<usize>, Range<usize>)> {
    let prefix: usize = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).map(|(x, _)| x.len_utf8()).sum();
    let (rest_a, rest_b) = (&a[prefix..], &b[prefix..]);
    let suffix: usize =
        rest_a.chars().rev().zip(rest_b.chars().rev()).take_while(|(x, y)| x == y).map(|(x, _)| x.len_utf8()).sum();
    let alike = prefix + suffix;
    (alike * 2 >= a.len().max(b.len())).then(|| (prefix..a.len() - suffix, prefix..b.len() - suffix))
}

/// The marks on one line.
struct Marks<'a> {
    line: &'a str,
    marked: Vec<Range<usize>>,
}

impl<'a> Marks<'a> {
    fn new(line: &'a str) -> Self {
        Marks { line, marked: Vec::new() }
    }

    /// Marks a range that begins where the last one ended, or later. What lies between two marks and separates only is marked
    /// with them: `shops.example: 192.0.2.1` reads better as one than as two.
    fn mark(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        match self.marked.last_mut() {
            Some(last) if self.line[last.end..range.start].chars().all(separates) => last.end = range.end,
            _ => self.marked.push(range),
        }
    }

    fn parts(self) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        let mut done = 0;
        let mut push = |range: Range<usize>, differs: bool| {
            if !range.is_empty() {
                parts.push(Part { text: &self.line[range], differs });
            }
        };
        for range in self.marked {
            push(done..range.start, false);
            done = range.end;
            // Blanks at the edge of a mark say nothing.
            let text = &self.line[range.clone()];
            let (front, back) = (text.len() - text.trim_start().len(), text.len() - text.trim_end().len());
            let inside = range.start + front..range.end - back.min(text.len() - front);
            push(range.start..inside.start, false);
            push(inside.clone(), true);
            push(inside.end..range.end, false);
        }
        push(done..self.line.len(), false);
        parts
    }
}

#[cfg(test)]
mod tests;
