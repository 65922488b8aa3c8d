//! Every statement that the code holds is prepared on both databases, so that a typing slip fails here.

use std::fs;
use std::path::{Path, PathBuf};

use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgPool, PgTypeInfo};
use sqlx::{AssertSqlSafe, Executor as _, SqlSafeStr as _};

use crate::support::stores::{Kind, TestStore};

/// A statement and where it stands.
pub struct Found {
    pub place: String,
    pub text: String,
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

/// The statements of a source, up to its tests: the literals that `sql` is called with and, where it is called with a name,
/// the constants that hold a statement.
pub fn statements(file: &str, source: &str) -> Vec<Found> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let (mut found, mut named): (Vec<Found>, Vec<String>) = (Vec::new(), Vec::new());
    for (at, call) in source.match_indices("sql(") {
        let before = source[..at].chars().next_back().unwrap_or(' ');
        if before.is_alphanumeric() || before == '_' || source[..at].ends_with("fn ") {
            continue;
        }
        let place = format!("{file}:{}", source[..at].lines().count());
        match literal(source[at + call.len()..].trim_start()) {
            Some(text) => found.push(Found { place, text }),
            None => named.push(place),
        }
    }
    if let Some(place) = named.first() {
        let before = found.len();
        for (at, start) in source.match_indices(": &str = ") {
            let text = literal(source[at + start.len()..].trim_start()).unwrap_or_default();
            if ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH "].iter().any(|verb| text.starts_with(verb)) {
                found.push(Found { place: format!("{file}:{}", source[..at].lines().count()), text });
            }
        }
        assert!(found.len() > before, "{place}: sql() takes a literal or a constant, so that it can be read here");
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
    let named = statements("x.rs", "const A: &str = \"SELECT 2\"; const B: &str = \"id, name\"; sql(A)");
    assert_eq!(named.into_iter().map(|found| found.text).collect::<Vec<_>>(), ["SELECT 2"]);
}

/// Parameters are given their types when they are bound; here PostgreSQL must find them out. Where it cannot (the branches of
/// a CASE, which it takes for text) the branches are declared to be numbers, and a type that stays open is no slip.
async fn refused_by_postgres(pool: &PgPool, text: &str) -> Option<sqlx::Error> {
    let prepare = async |types: &[PgTypeInfo]| {
        pool.acquire().await?.prepare_with(AssertSqlSafe(text.to_owned()).into_sql_str(), types).await
    };
    let code = |e: &sqlx::Error| e.as_database_error().and_then(|e| e.code()).map(|code| code.into_owned());
    let refusal = prepare(&[]).await.err()?;
    match code(&refusal).as_deref() {
        Some("42P18") => None,
        Some("42804") => prepare(&branches_as_numbers(text)).await.err(),
        _ => Some(refusal),
    }
}

fn branches_as_numbers(text: &str) -> Vec<PgTypeInfo> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let branch = |n: usize| words.windows(2).any(|w| matches!(w[0], "THEN" | "ELSE") && w[1] == format!("${n}"));
    let (number, unknown) = (PgTypeInfo::with_oid(Oid(20)), PgTypeInfo::with_oid(Oid(0)));
    let count = (1..).find(|n| !text.contains(&format!("${n}"))).unwrap_or(1) - 1;
    (1..=count).map(|n| if branch(n) { number.clone() } else { unknown.clone() }).collect()
}

#[tokio::test]
async fn every_statement_can_be_prepared_on_both_databases() {
    let found = all();
    assert!(found.len() > 1, "the statements were not found");
    let mut wrong = Vec::new();
    for kind in [Kind::SqliteMemory, Kind::Postgres] {
        let test = TestStore::migrated(kind).await;
        for Found { place, text } in &found {
            let refusal = match (test.store.sqlite_pool(), test.store.postgres_pool()) {
                (Some(pool), _) => pool.prepare(AssertSqlSafe(text.clone()).into_sql_str()).await.err(),
                (_, Some(pool)) => refused_by_postgres(pool, text).await,
                (None, None) => None,
            };
            if let Some(e) = refusal {
                wrong.push(format!("{place} on {kind:?}: {e}"));
            }
        }
        test.remove().await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
