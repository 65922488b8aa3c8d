//! Every statement that the code holds is prepared on both databases, so that a typing slip fails here.

use std::fs;
use std::path::{Path, PathBuf};

use sqlx::{AssertSqlSafe, Executor as _, SqlSafeStr as _};

use crate::support::stores::{Kind, TestStore};

/// A statement and where it stands.
struct Found {
    place: String,
    text: String,
}

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// The text of the string literal that `source` begins with, as the compiler would read it.
fn literal(source: &str) -> Option<String> {
    if let Some(raw) = source.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let (open, close) = (format!("{}\"", "#".repeat(hashes)), format!("\"{}", "#".repeat(hashes)));
        let body = raw.strip_prefix(&open)?;
        return Some(body[..body.find(&close)?].to_owned());
    }
    let mut text = String::new();
    let mut rest = source.strip_prefix('"')?.chars();
    loop {
        match rest.next()? {
            '"' => return Some(text),
            '\\' => match rest.next()? {
                '\n' => rest = rest.as_str().trim_start().chars(),
                'n' => text.push('\n'),
                't' => text.push('\t'),
                other => text.push(other),
            },
            c => text.push(c),
        }
    }
}

/// The arguments of all calls of `sql` in a source, up to its tests.
fn statements(file: &str, source: &str) -> Vec<Found> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    for (at, call) in source.match_indices("sql(") {
        let before = source[..at].chars().next_back().unwrap_or(' ');
        if before.is_alphanumeric() || before == '_' || source[..at].ends_with("fn ") {
            continue;
        }
        let place = format!("{file}:{}", source[..at].lines().count());
        let argument = source[at + call.len()..].trim_start();
        let text =
            literal(argument).unwrap_or_else(|| panic!("{place}: sql() takes a literal, so that it can be read here"));
        found.push(Found { place, text });
    }
    found
}

fn all() -> Vec<Found> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    let mut found = Vec::new();
    for file in files {
        let name = file.strip_prefix(root).unwrap().display().to_string();
        if name != "src/store/sql.rs" {
            found.extend(statements(&name, &fs::read_to_string(&file).unwrap()));
        }
    }
    found
}

#[test]
fn the_reader_of_statements_reads_what_the_compiler_does() {
    let source = "sql(\"SELECT \\\n      1\") sql(\n r#\"SELECT \"a\"\"#) my_sql(x) pub fn sql(text) sql(\"it\\\"s\")";
    let texts: Vec<_> = statements("x.rs", source).into_iter().map(|found| found.text).collect();
    assert_eq!(texts, ["SELECT 1", "SELECT \"a\"", "it\"s"]);
}

#[tokio::test]
async fn every_statement_can_be_prepared_on_both_databases() {
    let found = all();
    assert!(found.len() > 1, "the statements were not found");
    let mut wrong = Vec::new();
    for kind in [Kind::SqliteMemory, Kind::Postgres] {
        let test = TestStore::migrated(kind).await;
        for Found { place, text } in &found {
            let text = AssertSqlSafe(text.clone()).into_sql_str();
            let refusal = match (test.store.sqlite_pool(), test.store.postgres_pool()) {
                (Some(pool), _) => pool.prepare(text).await.err(),
                (_, Some(pool)) => pool.prepare(text).await.err(),
                (None, None) => None,
            };
            // A parameter of no certain type is given one when it is bound.
            let code = refusal.as_ref().and_then(|e| e.as_database_error()?.code().map(|c| c.into_owned()));
            if let Some(e) = refusal.filter(|_| code.as_deref() != Some("42P18")) {
                wrong.push(format!("{place} on {kind:?}: {e}"));
            }
        }
        test.remove().await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
