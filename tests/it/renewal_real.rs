//! One renewal in a whole world, whose CA is Pebble: every part is the real one, and so is the time.

use std::time::Duration;

use nameplate::app::reissue;
use nameplate::app::show::reissues as shown;
use nameplate::env::Env;
use nameplate::model::order::Lane;
use nameplate::sandbox::issuer::Choice;
use nameplate::sandbox::ports::Ports;
use nameplate::sandbox::walk::Walk;
use nameplate::sandbox::world::{World, WorldSettings};
use nameplate::store::reissues::Selection;
use nameplate::store::{OpenSettings, Store, sql};

use crate::support::services;

const HOST: &str = "support.acme.test";

#[tokio::test(flavor = "multi_thread")]
async fn pebble_issues_the_successor_while_the_first_is_served() {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let (dir, env) = (tempfile::tempdir().unwrap(), Env::real());
    let ca = Choice::Pebble(services::pebble_path());
    let settings = WorldSettings { data: Some(dir.path().to_owned()), ca, ports: Ports::free().await.unwrap() };
    let world = World::start(settings, &env).await.unwrap();
    let walk = Walk::new(&world).unwrap();
    walk.tenant().await.unwrap();
    let domain = walk.claim(HOST).await.unwrap();
    walk.first_look(&domain).await.unwrap();
    walk.publish(&domain, &["TXT", "CNAME"]).unwrap();
    let asked = walk.check_now(&domain).await.unwrap();
    walk.proven(&domain, asked).await.unwrap();
    walk.certified(&domain).await.unwrap();
    let before = walk.active(&domain).await.unwrap();
    let first = before.certificate.unwrap();
    let renewal = before.renewal.unwrap();
    assert!(renewal.at > first.not_before && renewal.at < first.not_after && !renewal.at_risk, "{renewal:?}");

    // Its time has come: the row says so, as it would in two months.
    let url = format!("sqlite:{}", dir.path().join("nameplate.db").display());
    let store = Store::open(&OpenSettings { url, connections: 1 }).await.unwrap();
    let due = sql("UPDATE renewals SET renew_at = $1").bind(env.now());
    store.execute(due).await.unwrap();
    store.execute(sql("UPDATE domains SET due_at = $1, nudged = generation").bind(env.now())).await.unwrap();
    let api = world.api().unwrap();
    let deadline = env.now() + Duration::from_secs(90);
    let second = loop {
        let view = api.domain(&domain.id).await.unwrap();
        assert!(view.serving, "{}", view.sentence);
        match view.certificate.filter(|c| c.serial != first.serial) {
            Some(second) => break second,
            None => assert!(env.now() < deadline, "{} {:?}", view.sentence, view.order),
        }
        env.sleep(Duration::from_millis(100)).await;
    };
    assert!(second.not_after >= first.not_after);
    walk.visited(HOST).await.unwrap();
    let renewed = sql("SELECT count(*) AS n FROM orders WHERE purpose = 'renew' AND state = 'issued'");
    assert_eq!(store.query(renewed).await.unwrap()[0].int("n").unwrap(), 1);

    // This CA's certificates are valid from now: edges switch an hour later, when slow clocks agree, and that comes first.
    let switch = sql("UPDATE renewals SET switch_at = $1 WHERE switch_at IS NOT NULL").bind(env.now());
    assert_eq!(store.execute(switch).await.unwrap(), 1);
    store.execute(sql("UPDATE domains SET due_at = $1, nudged = generation").bind(env.now())).await.unwrap();

    // And another one out of turn, by the issuer's name.
    reissue::begin_now(&store, &env, &Selection::Issuer("sandbox".to_owned()), Lane::Bulk, "operator").await.unwrap();
    assert_eq!(shown::list(&store, &env, "", 10).await.unwrap()[0].certificates, 1);
    let deadline = env.now() + Duration::from_secs(90);
    while shown::list(&store, &env, "", 10).await.unwrap()[0].left > 0 {
        assert!(env.now() < deadline, "{:?}", api.domain(&domain.id).await.unwrap().order);
        env.sleep(Duration::from_millis(100)).await;
    }
    walk.visited(HOST).await.unwrap();
    store.close().await;
    world.drain().await.unwrap();
}
