//! The documents hold together: links lead somewhere, and every dependency is accounted for.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::manifest;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// README, CHANGELOG and everything below docs.
fn documents() -> Vec<PathBuf> {
    let (mut open, mut out) = (vec![root().join("docs")], vec![root().join("README.md"), root().join("CHANGELOG.md")]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ext| ext == "md") {
                out.push(path);
            }
        }
    }
    out
}

/// The lines outside fenced code, with inline code blanked.
fn prose(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut out = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            out.push(line.split('`').enumerate().map(|(i, part)| if i % 2 == 0 { part } else { "" }).collect());
        }
    }
    out
}

/// The targets of `[text](target)`.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    prose
        .iter()
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.to_owned())
        .collect()
}

/// The anchors that a hosting site derives from the headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut out = BTreeSet::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if !fenced && line.starts_with('#') {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            out.insert(
                title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>().replace(' ', "-"),
            );
        }
    }
    out
}

/// What is wrong with one link of `from`.
fn dangling(from: &Path, target: &str) -> Option<String> {
    if target.starts_with("https://") || target.starts_with("http://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { from.to_owned() } else { from.parent().unwrap().join(file) };
    let say = |what: &str| Some(format!("{}: {target}: {what}", from.strip_prefix(root()).unwrap_or(from).display()));
    if !path.exists() {
        return say("no such file");
    }
    if !anchor.is_empty() && !anchors(&fs::read_to_string(&path).unwrap()).contains(anchor) {
        return say("no such heading");
    }
    None
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut seen = 0;
    let mut broken = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for target in links(&text) {
            seen += 1;
            broken.extend(dangling(&document, &target));
        }
    }
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
    assert!(seen > 10, "only {seen} links found: does the reader of links still work?");
}

#[test]
fn the_reader_of_links_sees_a_dangling_one() {
    assert_eq!(links("a [b](c.md#d) `[x](y)`\n```\n[e](f)\n```\n![g](h.svg)"), ["c.md#d", "h.svg"]);
    let readme = root().join("README.md");
    assert!(dangling(&readme, "docs/no-such-page.md").unwrap().contains("no such file"));
    assert!(dangling(&readme, "#no-such-heading").unwrap().contains("no such heading"));
    assert!(anchors("## One door, two stores").contains("one-door-two-stores"));
}

#[test]
fn every_dependency_is_accounted_for_and_no_other() {
    let text = fs::read_to_string(root().join("docs/decisions/dependencies.md")).unwrap();
    let rows: BTreeSet<String> = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .flat_map(|line| line.split('|').nth(1).unwrap().split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect();
    let direct: BTreeSet<String> = manifest::dependencies().into_iter().collect();
    let missing: Vec<_> = direct.difference(&rows).collect();
    let gone: Vec<_> = rows.difference(&direct).collect();
    assert!(missing.is_empty() && gone.is_empty(), "docs/decisions/dependencies.md: add {missing:?}, remove {gone:?}");
}
