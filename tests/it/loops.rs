//! The loops of a control plane: each has a pulse while it does its work, and one that does not is told of.

use std::time::Duration;

use nameplate::config::{Config, Role, Sources};
use nameplate::env::manual::Hand;
use nameplate::model::alert::loops::{self, LOOPS};
use nameplate::model::moment::Moment;
use nameplate::roles::{ControlPlane, open_store};
use nameplate::store::{Store, alerts, pulse, sql};
use tokio_util::sync::CancellationToken;

use crate::support::feed_world::until;
use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};
use crate::support::told::Told;

const MINUTE: Duration = Duration::from_secs(60);

fn config(url: &str) -> Config {
    let text = format!(
        "[database]\nurl = \"{url}\"\n[vault]\nmaster_key = \"{}\"\n[routing]\ncanonical_suffix = \"app.example\"\n\
         [dns]\nresolvers = [\"127.0.0.1:1\"]\n[issuers.test]\ndirectory = \"https://127.0.0.1:1/dir\"\n",
        "ab".repeat(32)
    );
    Config::read(Sources::none().file("nameplate.toml", text)).unwrap()
}

/// A process that works writes down that each of its loops went round, and of loops that it does not have nothing.
#[tokio::test]
async fn every_loop_of_a_process_has_a_pulse() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(&format!("sqlite:{}", dir.path().join("np.db").display()));
    let hand = Hand::new(Moment::from_secs(1_800_000_000), 7);
    let env = hand.env();
    open_store(&config).await.unwrap().close().await;
    let control = ControlPlane::open(&config, Role::Work, &env).await.unwrap();
    let store = control.store().clone();
    let unwanted = loops::DOMAIN_CONNECT.name;
    pulse::beat(&store, unwanted, env.now()).await.unwrap();
    let (began, stop) = (env.now(), CancellationToken::new());
    let working = tokio::spawn(control.work(stop.clone()));
    until("all loops went round", async || {
        hand.advance(MINUTE);
        let pulses = pulse::all(&store).await.unwrap();
        let beat = |name: &str| pulses.iter().any(|(of, at)| of == name && *at > began);
        LOOPS.iter().filter(|one| one.name != unwanted).all(|one| beat(one.name))
            && !pulses.iter().any(|(of, _)| of == unwanted)
    })
    .await;
    stop.cancel();
    while !working.is_finished() {
        hand.advance(Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
    working.await.unwrap().unwrap();
}

async fn beat_all(store: &Store, but: &str, now: Moment) {
    for one in LOOPS.iter().filter(|one| one.name != but) {
        pulse::beat(store, one.name, now).await.unwrap();
    }
}

/// Routine looks fail in every process, all else goes on: that is told once, with what it means, and is over once they succeed.
async fn one_loop_is_silent(rig: Rig) {
    let mut told = Told::on(rig).await;
    told.webhook(None, &["alert_raised", "alert_resolved"]).await;
    let silent = loops::ROUTINE_LOOKS.name;
    beat_all(&told.rig.app.store, "", told.rig.env.now()).await;
    let goes_on = async |told: &Told, minutes: u32, but: &str| {
        for _ in 0..minutes {
            beat_all(&told.rig.app.store, but, told.rig.env.now()).await;
            told.beats(MINUTE).await;
        }
    };
    goes_on(&told, 8, silent).await;
    assert_eq!(told.receivers.kinds().len(), 0, "a round may take its time");
    goes_on(&told, 5, silent).await;
    assert_eq!(told.receivers.kinds(), ["alert_raised"]);
    let detail = told.receivers.taken()[0].body["data"]["detail"].clone();
    assert_eq!((detail["kind"].as_str(), detail["subject"].as_str()), (Some("loop_silent"), Some(silent)));
    let open = alerts::open_of_platform(&told.rig.app.store).await.unwrap();
    assert!(open[0].said.contains(loops::ROUTINE_LOOKS.without), "{}", open[0].said);
    // Another process begins to watch: it knows at once what is open already, and lets it be.
    told.alerts = nameplate::app::alerts::AlertSettings::default();
    goes_on(&told, 20, silent).await;
    assert_eq!(told.receivers.kinds(), ["alert_raised"]);
    goes_on(&told, 7, "").await;
    assert_eq!(told.receivers.kinds(), ["alert_raised", "alert_resolved"]);
    // Everything was off for a day: whoever begins gives all loops the time for a round.
    told.rig.hand.advance(MINUTE * 60 * 24);
    told.alerts = nameplate::app::alerts::AlertSettings::default();
    told.watch().await;
    goes_on(&told, 10, "").await;
    assert_eq!(told.receivers.kinds().len(), 2);
    // One that no process runs is missed by nobody.
    let store = &told.rig.app.store;
    store.execute(sql("DELETE FROM pulses WHERE name = $1").bind(silent)).await.unwrap();
    goes_on(&told, 30, silent).await;
    assert_eq!(told.receivers.kinds().len(), 2);
}

#[tokio::test]
async fn a_loop_that_does_nothing_is_told_of_once_and_its_return_too() {
    one_loop_is_silent(Rig::new(371).await).await;
}

#[tokio::test]
async fn a_loop_that_does_nothing_is_told_of_once_and_its_return_too_on_postgres() {
    let store = TestStore::blank(Kind::Postgres).await;
    one_loop_is_silent(Rig::on(372, &store.url).await).await;
    store.remove().await;
}
