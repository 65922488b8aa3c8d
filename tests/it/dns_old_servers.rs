//! Name servers that do not know what came after them.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use nameplate::dns::world::Reply;
use nameplate::dns::{Limits, Look, wire};
use nameplate::model::checks;
use nameplate::model::look::{Answer, Observer, Outcome};
use nameplate::sandbox::dns::{Sockets, Who};

use crate::support::dns_ask::{VALUE, ownership, world};
use crate::support::dns_world;

/// What a server without EDNS answers to a question with it (FORMERR, RFC 6891 §7).
const FORMAT_ERROR: u16 = 1;

#[tokio::test]
async fn a_server_that_takes_edns_for_an_error_is_asked_without() {
    let world = world(&[&format!("_nameplate-challenge.shop.example.com. 300 IN TXT \"{VALUE}\"")]);
    let Sockets { udp, tcp } = Sockets::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).await.unwrap();
    let at = tcp.local_addr().unwrap();
    let zone = world.clone();
    let old = tokio::spawn(async move {
        let mut octets = vec![0; 4096];
        loop {
            let Ok((length, from)) = udp.recv_from(&mut octets).await else { continue };
            let Some(asked) = wire::asked(&octets[..length]) else { continue };
            let answer = match zone.answer(&Who::Server("ns1.dns.example".to_owned()), &asked.name, asked.kind) {
                _ if asked.extended() => Answer::bare(Outcome::Other(FORMAT_ERROR)),
                Reply::Answer(answer) => answer,
                Reply::Silence | Reply::Truncated => continue,
            };
            let _ = udp.send_to(&wire::reply(&asked, &answer, false, 512).unwrap(), from).await;
        }
    });
    let limits = Limits { per_query: Duration::from_secs(3), time: Duration::from_secs(30), ..Limits::default() };
    let dns = dns_world::serve_with(&world, &[], &[(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), at)], limits).await;
    let ask = ownership("shop.example.com");
    let seen = dns.observers.look(&ask).await;
    old.abort();
    assert_eq!(checks::judge(&ask, &seen)[0].reason.code(), "txt_ok");
    let from_server = |o: &&nameplate::model::look::Observation| matches!(o.probe.observer, Observer::Server { .. });
    assert!(seen.observations.iter().filter(from_server).all(|o| o.answer.definite()), "{:#?}", seen.observations);
}
