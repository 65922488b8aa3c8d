//! Ways to us other than a plain CNAME, through a whole sandbox: real DNS packets, the CA's own validation, a real edge.

use nameplate::env::Env;
use nameplate::model::claim::Claim;
use nameplate::model::evidence::Check;
use nameplate::sandbox::issuer::Choice;
use nameplate::sandbox::ports::Ports;
use nameplate::sandbox::walk::Walk;
use nameplate::sandbox::world::{World, WorldSettings};

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_us_is_served_by_a_real_edge() {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let settings = WorldSettings { data: None, ca: Choice::Test, ports: Ports::free().await.unwrap() };
    let world = World::start(settings, &Env::real()).await.unwrap();
    let walk = Walk::new(&world).unwrap();
    walk.tenant().await.unwrap();
    let ways: [(&str, &[&str], &str); 4] = [
        ("acme.test", &["acme.test. 60 IN A 127.0.0.1"], "address_ok"),
        ("flat.acme.test", &["flat.acme.test. 60 IN A 127.0.0.1"], "address_ok"),
        (
            "chain.acme.test",
            &["chain.acme.test. 60 IN CNAME www.acme.test.", "www.acme.test. 60 IN CNAME acme.app.example."],
            "cname_ok_chain",
        ),
        ("plain.acme.test", &["plain.acme.test. 60 IN CNAME acme.app.example."], "cname_ok"),
    ];
    for (name, records, code) in ways {
        let domain = walk.claim(name).await.unwrap();
        walk.first_look(&domain).await.unwrap();
        for record in records {
            world.outside.zones.add(record).unwrap();
        }
        walk.publish(&domain, &["TXT"]).unwrap();
        let asked = walk.check_now(&domain).await.unwrap();
        walk.proven(&domain, asked).await.unwrap();
        walk.certified(&domain).await.unwrap();
        let view = walk.active(&domain).await.unwrap();
        walk.visited(name).await.unwrap();
        let check = |which| view.checks.iter().find(|c| c.check == which).unwrap();
        assert_eq!(check(Check::Routing).code, code, "{name}");
        let preflight = check(Check::Preflight);
        assert_eq!(preflight.code, "preflight_ok", "{name}");
        assert_eq!(preflight.observed, ["127.0.0.1: our server answered"], "{name}");
    }
    // The IPv6 address of a last one leads elsewhere: the CA, which tries that first, is never asked.
    let domain = walk.claim("half.acme.test").await.unwrap();
    walk.first_look(&domain).await.unwrap();
    for record in ["half.acme.test. 60 IN A 127.0.0.1", "half.acme.test. 60 IN AAAA 2001:db8:bad::7"] {
        world.outside.zones.add(record).unwrap();
    }
    walk.publish(&domain, &["TXT"]).unwrap();
    let asked = walk.check_now(&domain).await.unwrap();
    let failed = walk.proven(&domain, asked).await.unwrap_err();
    assert!(failed.seen.contains("aaaa_points_elsewhere"), "{failed}");
    let view = world.api().unwrap().domain(&domain.id).await.unwrap();
    assert_eq!((view.claim, view.order.is_none()), (Claim::AwaitingDns, true));
    world.drain().await.unwrap();
}
