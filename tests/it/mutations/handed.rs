//! Readers of what is handed in whole: a file of names, and what a DNS provider or a CA says of itself.

use nameplate::acme::ProblemDoc;
use nameplate::model::bulk::{Format, Reader as BulkReader, Row, RowRules};
use nameplate::model::domain_connect::{Endpoint, Prefix, Settings, is_path, key_records, public_key};
use nameplate::model::hostname::NameRules;

use super::Reader;

/// Reads a file in pieces of several sizes, which may make no difference; whether a row was taken.
fn import(format: Format, octets: &[u8]) -> bool {
    let rules = RowRules { names: NameRules::default(), tenant_known: false };
    let read = |size: usize| {
        let (mut reader, mut rows) = (BulkReader::new(format, rules.clone(), 1_000), Vec::new());
        let fed = octets.chunks(size).try_for_each(|piece| reader.feed(piece, &mut rows));
        (fed.and_then(|()| reader.finish(&mut rows)).map_err(|e| e.to_string()), rows)
    };
    let (ended, rows): (Result<(), String>, Vec<Row>) = read(7);
    assert_eq!(read(usize::MAX).0.is_ok(), ended.is_ok());
    assert!(rows.windows(2).all(|pair| pair[0].line < pair[1].line), "a line is one row");
    for row in &rows {
        let kept = row.tenant.iter().chain([&row.typed]);
        assert!(kept.clone().all(|text| !text.contains(char::is_control) && text.chars().count() <= 300), "{row:?}");
        if let Ok(name) = &row.read {
            assert!(name.as_str().len() <= 253 && name.as_str().is_ascii(), "{name}");
        }
    }
    rows.iter().any(|row| row.read.is_ok())
}

fn settings(octets: &[u8]) -> bool {
    let asked = Endpoint { host: "connect.example.com".into(), path: String::new() };
    let Ok(settings) = Settings::read(octets, &asked, &["known.org".to_owned()]) else { return false };
    for place in settings.sync.iter().chain([&settings.api]) {
        assert!(is_path(&place.path), "{place:?}");
        assert!(["example.com", "known.org"].contains(&place.registered_domain().as_str()), "{place:?}");
    }
    assert!(!settings.provider.contains(char::is_control), "{:?}", settings.provider);
    true
}

pub fn readers() -> Vec<Reader> {
    let csv = "\u{feff}hostname,tenant\r\nshop.example.com,acme\r\n\"a.example.com\",acme\n'=1+1,acme\n";
    let ndjson =
        "{\"hostname\":\"shop.example.com\",\"tenant\":\"acme\"}\n{\"domain\":\"b.example.com\",\"tenant\":\"b\"}\n";
    let said = r#"{"providerId":"dns.example.com","providerName":"Example DNS","urlSyncUX":"https://connect.example.com/sync","urlAPI":"https://api.known.org","crit":["urlAPI"]}"#;
    let problem =
        r#"{"type":"urn:ietf:params:acme:error:caa","detail":"no","subproblems":[{"type":"x","identifier":{"value":"a"}}]}"#;
    let key: Vec<u8> = (0..=255).chain(0..38).collect();
    vec![
        Reader::octets("a file of names", vec![csv.into()], |octets| import(Format::Csv, octets)),
        Reader::octets("a file of objects", vec![ndjson.into()], |octets| import(Format::Ndjson, octets)),
        Reader::text("where a zone's provider is", &["connect.example.com", "connect.example.com/dc/v1"], |text| {
            let Some(Prefix(place)) = Prefix::read(text) else { return false };
            assert!(is_path(&place.path) && place.host.contains('.') && place.host.len() <= 253, "{place:?}");
            true
        }),
        Reader::octets("what a provider says of itself", vec![said.into()], settings),
        Reader::octets("a published key", vec![key_records(&key).join("\n").into_bytes()], |octets| {
            let texts: Vec<String> = String::from_utf8_lossy(octets).lines().map(str::to_owned).collect();
            let Some(read) = public_key(&texts) else { return false };
            assert_eq!(public_key(&key_records(&read)), Some(read));
            true
        }),
        Reader::octets("a CA's problem", vec![problem.into()], |octets| {
            let Some(read) = serde_json::from_slice(octets).ok().and_then(ProblemDoc::new) else { return false };
            let text = read.json().to_string();
            assert_eq!(ProblemDoc::new(read.json().clone()), Some(read.clone()), "bounded twice is bounded once");
            assert!(read.subproblems().count() <= 100 && text.len() < 2_000_000);
            true
        }),
    ]
}
