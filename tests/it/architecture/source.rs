//! Reads the paths out of a Rust source file: comments and strings gone, `use` groups spread out, `super` resolved.
//!
//! Not a parser: tokens are enough, because every way to reach another module writes a path that begins with `crate`,
//! `super`, `self`, the crate's own name, or the name of another crate.

/// A word, `::`, or one sign, with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The text.
    pub text: String,
    /// Counted from one.
    pub line: usize,
}

/// A path as written, spread out of its `use` group and made absolute where it began with `crate`, `super` or `self`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// Its segments; `*` for a glob. For a path of our own crate the folder comes first.
    pub segments: Vec<String>,
    /// Whether it points into our own crate.
    pub ours: bool,
    /// Counted from one.
    pub line: usize,
}

/// The tokens of a source text; string and character literals become the one token `""`.
pub fn tokens(text: &str) -> Vec<Token> {
    let c: Vec<char> = text.chars().collect();
    let (mut i, mut line, mut out) = (0, 1, Vec::new());
    let at = |i: usize| c.get(i).copied().unwrap_or('\0');
    while i < c.len() {
        let start = (i, line);
        let mut word = None;
        match c[i] {
            '/' if at(i + 1) == '/' => {
                while i < c.len() && c[i] != '\n' {
                    i += 1;
                }
            }
            '/' if at(i + 1) == '*' => i = after_block_comment(&c, i),
            '"' => (i, word) = (after_string(&c, i), Some("\"\"".to_owned())),
            '\'' if at(i + 1) == '\\' => {
                i += 3;
                while i < c.len() && c[i] != '\'' {
                    i += 1;
                }
                i += 1;
                word = Some("\"\"".to_owned());
            }
            '\'' if at(i + 2) == '\'' => (i, word) = (i + 3, Some("\"\"".to_owned())),
            '\'' => {
                i += 1;
                while is_word(at(i)) {
                    i += 1;
                }
            }
            ':' if at(i + 1) == ':' => (i, word) = (i + 2, Some("::".to_owned())),
            ch if is_word(ch) => {
                while is_word(at(i)) {
                    i += 1;
                }
                let text: String = c[start.0..i].iter().collect();
                let prefix = matches!(text.as_str(), "r" | "b" | "br" | "c" | "cr");
                let hashes = (i..c.len()).take_while(|&k| c[k] == '#').count();
                if prefix && text.contains('r') && at(i + hashes) == '"' {
                    (i, word) = (after_raw_string(&c, i, hashes), Some("\"\"".to_owned()));
                } else if prefix && at(i) == '"' {
                    (i, word) = (after_string(&c, i), Some("\"\"".to_owned()));
                } else if text == "r" && hashes == 1 && is_word(at(i + 1)) {
                    i += 1; // a raw identifier: the word follows
                } else {
                    word = Some(text);
                }
            }
            ch => {
                i += 1;
                if !ch.is_whitespace() {
                    word = Some(ch.to_string());
                }
            }
        }
        i = i.min(c.len());
        line += c[start.0..i].iter().filter(|&&ch| ch == '\n').count();
        out.extend(word.map(|text| Token { text, line: start.1 }));
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn after_block_comment(c: &[char], mut i: usize) -> usize {
    let mut depth = 0;
    while i < c.len() {
        match (c[i], c.get(i + 1)) {
            ('/', Some('*')) => (depth, i) = (depth + 1, i + 2),
            ('*', Some('/')) => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            break;
        }
    }
    i
}

fn after_string(c: &[char], mut i: usize) -> usize {
    i += 1;
    while i < c.len() && c[i] != '"' {
        i += if c[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

fn after_raw_string(c: &[char], mut i: usize, hashes: usize) -> usize {
    i += hashes + 1;
    while i < c.len() && !(c[i] == '"' && c[i + 1..].iter().take(hashes).filter(|&&ch| ch == '#').count() == hashes) {
        i += 1;
    }
    i + 1 + hashes
}

/// The module that a file holds, from its name relative to `src`: `a/mod.rs` and `a.rs` are `a`, the roots are empty.
pub fn module_of(file: &str) -> Vec<String> {
    let mut parts: Vec<String> = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod") || ["lib", "main"].contains(&parts.join("/").as_str()) {
        parts.pop();
    }
    parts
}

/// Every path in `tokens`, which are those of the file that holds `module`.
pub fn reaches(tokens: &[Token], module: &[String]) -> Vec<Reach> {
    let text = |i: usize| tokens.get(i).map_or("", |t| t.text.as_str());
    let (mut out, mut inner, mut depth, mut i): (_, Vec<(String, usize)>, usize, usize) = (Vec::new(), Vec::new(), 0, 0);
    while i < tokens.len() {
        match text(i) {
            "mod" if text(i + 2) == "{" => {
                depth += 1;
                inner.push((text(i + 1).to_owned(), depth));
                i += 3;
                continue;
            }
            "{" => depth += 1,
            "}" => {
                if inner.last().is_some_and(|(_, d)| *d == depth) {
                    inner.pop();
                }
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        let before = i.checked_sub(1).map_or("", text);
        let continued = before == "::" && i >= 2 && (is_segment(text(i - 2)) || text(i - 2) == ">");
        let alone = ["use", "crate"].contains(&before) || text(i + 1) == "as";
        if !is_segment(text(i)) || continued || (text(i + 1) != "::" && !alone) {
            i += 1;
            continue;
        }
        let mut found = Vec::new();
        i = spread(tokens, i, &mut Vec::new(), &mut found);
        let here: Vec<String> = module.iter().cloned().chain(inner.iter().map(|(name, _)| name.clone())).collect();
        out.extend(found.into_iter().map(|(segments, line)| absolute(segments, line, &here)));
    }
    out
}

/// Words after which a `::` begins a path instead of going on with one.
const BEFORE_A_PATH: &[&str] = &["use", "as", "dyn", "else", "for", "if", "impl", "in", "match", "mut", "return", "where"];

fn is_segment(token: &str) -> bool {
    token.starts_with(is_word) && !BEFORE_A_PATH.contains(&token)
}

/// Follows one `use` tree (or plain path) from `i`; returns where it ends.
fn spread(tokens: &[Token], mut i: usize, prefix: &mut Vec<String>, out: &mut Vec<(Vec<String>, usize)>) -> usize {
    let text = |i: usize| tokens.get(i).map_or("", |t| t.text.as_str());
    if text(i) == "{" {
        i += 1;
        while i < tokens.len() && text(i) != "}" {
            if text(i) == "{" || text(i) == "*" || text(i).starts_with(is_word) {
                i = spread(tokens, i, &mut prefix.clone(), out);
                while i < tokens.len() && text(i) != "," && text(i) != "}" {
                    i += 1;
                }
            } else {
                i += 1;
            }
        }
        return i + 1;
    }
    prefix.push(text(i).to_owned());
    let next = text(i + 2);
    if text(i + 1) == "::" && (next == "{" || next == "*" || next.starts_with(is_word)) {
        return spread(tokens, i + 2, prefix, out);
    }
    out.push((prefix.clone(), tokens[i].line));
    i + 1
}

fn absolute(segments: Vec<String>, line: usize, here: &[String]) -> Reach {
    let mut module = here.to_vec();
    let mut rest = segments.as_slice();
    let ours = match rest.first().map(String::as_str) {
        Some("crate" | "nameplate") => {
            (module, rest) = (Vec::new(), &rest[1..]);
            true
        }
        Some("self" | "super") => {
            while let Some(step @ ("self" | "super")) = rest.first().map(String::as_str) {
                if step == "super" {
                    module.pop();
                }
                rest = &rest[1..];
            }
            true
        }
        _ => {
            module.clear();
            false
        }
    };
    module.extend(rest.iter().filter(|s| *s != "self").cloned());
    Reach { segments: module, ours, line }
}
