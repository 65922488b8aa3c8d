//! The code is held to the layers of docs/architecture.md: imports point down, other people's crates stay at home, the model
//! stays pure, each folder says what it is, files stay small.

mod rules;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use rules::check;

const LONGEST: usize = 500;

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every Rust file below `src`: its name relative to it, and its text.
fn files() -> Vec<(String, String)> {
    let (root, mut open, mut out) = (src(), vec![src()], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                out.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(out.len() > 5, "only {} files below {}", out.len(), root.display());
    out.sort();
    out
}

/// The direct dependencies, as Rust spells them.
fn crates() -> Vec<String> {
    crate::support::manifest::dependencies().into_iter().map(|name| name.replace('-', "_")).collect()
}

#[test]
fn imports_point_down_and_crates_stay_at_home() {
    let crates = crates();
    let broken: Vec<String> = files()
        .iter()
        .flat_map(|(file, text)| check(file, text, &crates))
        .map(|b| format!("src/{}:{}: {}", b.file, b.line, b.rule))
        .collect();
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

#[test]
fn every_folder_opens_with_an_essay() {
    let files = files();
    let text = |name: &str| files.iter().find(|(file, _)| file == name).map(|(_, text)| text.as_str());
    let mut folders: Vec<&str> =
        files.iter().filter_map(|(file, _)| file.rsplit_once('/')).map(|(folder, _)| folder).collect();
    folders.dedup();
    for folder in folders {
        let Some(home) = text(&format!("{folder}/mod.rs")) else {
            // Not a folder of its own but the parts of one file, which speaks for them.
            let file =
                text(&format!("{folder}.rs")).unwrap_or_else(|| panic!("src/{folder} has neither mod.rs nor {folder}.rs"));
            assert!(file.starts_with("//!"), "src/{folder}.rs does not say what it is");
            continue;
        };
        let essay = home.lines().take_while(|line| line.starts_with("//!")).filter(|line| line.len() > 4).count();
        assert!(essay >= 3, "src/{folder}/mod.rs: {essay} lines of `//!`: say what it owns, may import, what always holds");
    }
}

#[test]
fn no_file_grows_past_reading() {
    for (file, text) in files() {
        let lines = text.lines().count();
        assert!(lines <= LONGEST, "src/{file} has {lines} lines, more than {LONGEST}: split it");
    }
}

/// The rules broken by a made-up file, as `line: rule`.
fn broken(file: &str, text: &str) -> Vec<String> {
    let crates = ["aws_lc_rs", "sqlx", "apalis_core", "instant_acme", "hickory_proto", "axum", "tokio", "serde", "time"]
        .map(str::to_owned);
    check(file, text, &crates).into_iter().map(|b| format!("{}: {}", b.line, b.rule)).collect()
}

#[track_caller]
fn refused(file: &str, text: &str, starts: &[&str]) {
    let seen = broken(file, text);
    let same = seen.len() == starts.len() && seen.iter().zip(starts).all(|(seen, start)| seen.starts_with(start));
    assert!(same, "{file}: {text}\nexpected {starts:#?}\nseen {seen:#?}");
}

#[test]
fn the_checker_sees_imports_that_point_up_or_sideways() {
    refused("store/orders.rs", "use crate::app::advance;", &["1: `app::advance` is up"]);
    refused("model/plan.rs", "\nuse crate::env::Env;", &["2: `env::Env` is up"]);
    refused("dns/mod.rs", "fn f() -> crate::store::Store { todo() }", &["1: `store::Store` is sideways"]);
    refused("config/mod.rs", "use crate::telemetry;", &["1: `telemetry` is sideways"]);
    refused("telemetry/mod.rs", "use crate::config::Log;", &[]);
    refused("web/api.rs", "use crate::{app::{self, claim}, jobs::wake, model::*};", &["1: `jobs::wake` is sideways"]);
    refused("store/mod.rs", "use super::vault::seal;", &["1: `vault::seal` is sideways"]);
    refused("store/orders.rs", "use super::super::app::x; use super::tokens;", &["1: `app::x` is up"]);
    refused(
        "store/orders.rs",
        "mod tests { use super::super::tokens; use super::super::super::dns::Look; }",
        &["1: `dns::Look` is sideways"],
    );
    refused("store/orders.rs", "mod tests { }\nuse super::super::dns::Look;", &["2: `dns::Look` is sideways"]);
    refused("store/orders.rs", "fn f() { nameplate::cli::run() }", &["1: `cli::run` is up"]);
    refused("main.rs", "fn main() { nameplate::cli::run() }", &[]);
}

#[test]
fn the_checker_sees_ways_around_it() {
    refused("store/orders.rs", "use crate as all;", &["1: the crate's root is imported whole"]);
    refused("store/orders.rs", "use crate::*;", &["1: the crate's root is imported whole"]);
    refused("store/orders.rs", "use super::super as all;", &["1: the crate's root is imported whole"]);
    refused("store/orders.rs", "use crate::{self as all};", &["1: the crate's root is imported whole"]);
    refused("store/orders.rs", "use crate::shed::Thing;", &["1: `shed::Thing` lies in no layer"]);
    refused("shed/mod.rs", "use crate::model::Thing;", &["1: `shed` stands in no layer"]);
    refused("env/mod.rs", "fn f() { crate::mint!(env, TenantId) }", &[]);
    refused("model/id.rs", "fn f() { crate::mint!(env, TenantId) }", &["1: `mint` is up"]);
}

#[test]
fn the_checker_is_not_fooled_by_comments_and_strings() {
    let quiet = r####"
        // use crate::app::x;
        /* use crate::app::x; /* nested */ use crate::app::y; */
        const A: &str = "use crate::app::x; \" crate::app::y";
        const B: &str = r#"crate::app::x " crate::app::y"#;
        const C: (char, char, u8) = ('"', '\'', b'"');
        fn f<'a>(x: &'a str) -> &'a str { x }
        pub(crate) fn g() {}
        fn r#try() -> Vec::<crate::model::Thing> {}
    "####;
    refused("store/orders.rs", quiet, &[]);
    refused("store/orders.rs", &format!("{quiet}use crate::app::x;"), &["10: `app::x` is up"]);
}

#[test]
fn the_checker_keeps_crates_at_home() {
    refused("app/claim.rs", "use sqlx::Row;", &["1: `sqlx` has its home in store, jobs/queue"]);
    refused("app/claim.rs", "#[derive(Debug, sqlx::FromRow)]\nstruct Row;", &["1: `sqlx` has its home"]);
    refused("app/claim.rs", "use ::sqlx as s;\nuse sqlx;\nuse {sqlx as t};", &["1: `sqlx`", "2: `sqlx`", "3: `sqlx`"]);
    refused("store/mod.rs", "use sqlx::Row;", &[]);
    refused("jobs/queue.rs", "use sqlx::Row; use apalis_core::task::Task;", &[]);
    refused("jobs/worker.rs", "use apalis_core::task::Task;", &["1: `apalis_core` has its home"]);
    refused("feed/publisher/mod.rs", "use axum::Router;", &[]);
    refused("feed/client.rs", "use axum::Router;", &["1: `axum` has its home"]);
    refused("sandbox/zone.rs", "use hickory_proto::rr::Name; use axum::Router;", &[]);
    refused("web/zone.rs", "use hickory_proto::rr::Name;", &["1: `hickory_proto` has its home"]);
    refused("app/issue.rs", "fn f(e: instant_acme::Error) {}", &["1: `instant_acme` has its home"]);
}

#[test]
fn the_checker_keeps_the_model_pure() {
    refused("model/plan.rs", "use std::time::Duration; use std::net::IpAddr; use serde::Serialize;", &[]);
    refused("model/plan.rs", "use std::time::{Duration, Instant};", &["1: `std::time::Instant`"]);
    refused("model/plan.rs", "use std::time::*;", &["1: `std::time::*`"]);
    refused("model/plan.rs", "use std::{fs, collections::HashMap};", &["1: `std::fs`"]);
    refused("model/plan.rs", "fn f(s: std::net::TcpStream) {}", &["1: `std::net::TcpStream`"]);
    refused("model/plan.rs", "use tokio::sync::Mutex;", &["1: `tokio::sync::Mutex` in the model"]);
    refused("model/plan.rs", "use aws_lc_rs::constant_time;\nuse aws_lc_rs::rand;", &["2: `aws_lc_rs::rand` in the model"]);
    refused("model/plan.rs", "\nasync fn f() {}", &["2: the model never waits"]);
    refused("model/plan.rs", "fn f() { g().await }", &["1: the model never waits"]);
    refused("app/claim.rs", "use std::fs; async fn f() { g().await }", &[]);
}

#[test]
fn the_checker_keeps_the_far_side_free_of_the_database() {
    refused(
        "edge/follow.rs",
        "use crate::feed::{client::Follower, wire}; use crate::vault::signing; use super::book::Book;",
        &[],
    );
    refused("edge/follow.rs", "crate::mint!(env, EdgeId); use crate::config::EdgeSection;", &[]);
    refused("edge/follow.rs", "use crate::feed::publish;", &["1: `feed::publish`: `edge` runs without a database"]);
    refused("edge/follow.rs", "use crate::feed;", &["1: `feed`: `edge` runs without a database"]);
    refused("edge/follow.rs", "use crate::store::Store;", &["1: `store::Store`: `edge` runs without"]);
    refused("edge/follow.rs", "use crate::vault::master;", &["1: `vault::master`: `edge` runs without"]);
    refused("agent/write.rs", "use crate::app::claim;", &["1: `app::claim`: `agent` runs without"]);
    refused(
        "feed/client/mod.rs",
        "use crate::store::Store; use crate::feed::wire::Frame;",
        &["1: `store::Store`: `feed/client`"],
    );
    refused("feed/wire.rs", "use super::publish::Row;", &["1: `feed::publish::Row`: `feed/wire`"]);
    refused("feed/publish.rs", "use crate::store::Store; use super::wire::Frame;", &[]);
}
