//! What is secret in an installation, and whether a text has it.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use nameplate::store::{OpenSettings, Store, sql};
use nameplate::vault::{Context, MasterKey, Sealed, Vault};

/// Everything secret that a run in this directory made, opened: what it is, and its bytes.
pub async fn of(dir: &Path, edge: &str, url: &str) -> Vec<(String, Vec<u8>)> {
    let key = std::fs::read_to_string(dir.join("master.key")).unwrap();
    let master = base64::engine::general_purpose::STANDARD.decode(key.trim()).unwrap();
    let mut all = vec![("the master key".to_owned(), master)];
    let member: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.join(edge).join("member.json")).unwrap()).unwrap();
    for name in ["private_key", "credential"] {
        all.push((format!("the edge's {name}"), URL_SAFE_NO_PAD.decode(member[name].as_str().unwrap()).unwrap()));
    }
    let vault = Vault::new(MasterKey::from_text(1, key.trim()).unwrap(), vec![]);
    let store = Store::open(&OpenSettings { url: url.to_owned(), connections: 1 }).await.unwrap();
    let sealed = [
        ("account-key", "SELECT id AS id, account_key AS sealed FROM issuers"),
        ("certificate-key", "SELECT COALESCE(order_id, id) AS id, sealed_key AS sealed FROM certificates"),
        ("feed-signing-key", "SELECT '1' AS id, signing_key AS sealed FROM feed"),
        ("feed-tls-key", "SELECT '1' AS id, tls_key AS sealed FROM feed"),
        ("distribution-key", "SELECT id AS id, sealed_key AS sealed FROM distribution_keys"),
    ];
    for (purpose, query) in sealed {
        let rows = store.query(sql(query)).await.unwrap();
        assert!(!rows.is_empty(), "there is no {purpose}");
        for row in rows {
            let blob = Sealed::try_from(row.blob("sealed").unwrap()).unwrap();
            let opened = vault.open(&Context::new(purpose, &row.text("id").unwrap()), &blob).unwrap();
            all.push((purpose.to_owned(), opened.expose().to_vec()));
        }
    }
    store.close().await;
    all
}

/// The ways in which bytes end up in a text.
fn spellings(bytes: &[u8]) -> Vec<String> {
    let hex = |upper: bool| bytes.iter().map(|b| if upper { format!("{b:02X}") } else { format!("{b:02x}") }).collect();
    let list = format!("{bytes:?}");
    vec![
        hex(false),
        hex(true),
        STANDARD_NO_PAD.encode(bytes),
        URL_SAFE_NO_PAD.encode(bytes),
        list.trim_matches(['[', ']']).into(),
    ]
}

/// What of these bytes must be nowhere: of a PKCS#8 document the private number alone is as bad as all of it.
pub fn parts(bytes: &[u8]) -> [&[u8]; 2] {
    [bytes, bytes.get(36..68).filter(|_| bytes.len() > 100).unwrap_or(bytes)]
}

/// Fails where the text has these bytes in any spelling.
#[track_caller]
pub fn not_in(text: &str, what: &str, bytes: &[u8]) {
    for spelling in parts(bytes).into_iter().flat_map(spellings) {
        let line = text.lines().find(|line| line.contains(&spelling));
        assert_eq!(line, None, "{what} was printed");
    }
}
