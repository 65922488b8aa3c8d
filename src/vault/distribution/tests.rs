use proptest::prelude::*;

use super::*;
use crate::env::manual::Hand;
use crate::model::moment::Moment;

fn env(seed: u64) -> Env {
    Hand::new(Moment::default(), seed).env()
}

const LABEL: Label<'static> = Label { kind: "certificate", id: "crt_1", version: 4 };

fn secret() -> Secret {
    Secret::new(b"a private key".to_vec())
}

#[test]
fn a_packet_opens_under_its_own_key_and_label_only() {
    let env = env(1);
    let (key, other) = (DistributionKey::generate(&env), DistributionKey::generate(&env));
    let packet = key.seal(&env, LABEL, &secret()).unwrap();
    assert_eq!(key.open(LABEL, &packet).unwrap(), secret());
    assert_eq!(other.open(LABEL, &packet), Err(DistributionError::OtherKey { seen: key.id(), have: other.id() }));
    for label in [Label { kind: "challenge", ..LABEL }, Label { id: "crt_2", ..LABEL }, Label { version: 5, ..LABEL }] {
        assert_eq!(key.open(label, &packet), Err(DistributionError::DoesNotOpen { key: key.id() }));
    }
}

#[test]
fn a_key_wrapped_for_one_edge_opens_on_that_edge_only() {
    let env = env(1);
    let key = DistributionKey::generate(&env);
    let (edge, stranger) = (EdgeKeyPair::generate(&env).unwrap(), EdgeKeyPair::generate(&env).unwrap());
    let wrapped = key.wrap_for(&env, &edge.public()).unwrap();
    let reloaded = EdgeKeyPair::from_private(edge.private().clone()).unwrap();
    assert_eq!(reloaded.unwrap(&wrapped).unwrap(), key);
    assert_eq!(stranger.unwrap(&wrapped), Err(DistributionError::DoesNotOpen { key: key.id() }));
}

#[test]
fn one_changed_byte_anywhere_and_nothing_opens() {
    let env = env(1);
    let key = DistributionKey::generate(&env);
    let edge = EdgeKeyPair::generate(&env).unwrap();
    let packet = key.seal(&env, LABEL, &secret()).unwrap();
    for at in 0..packet.as_bytes().len() {
        let mut bytes = packet.as_bytes().to_vec();
        bytes[at] ^= 0x40;
        assert!(!matches!(Packet::try_from(bytes).map(|p| key.open(LABEL, &p)), Ok(Ok(_))), "packet byte {at}");
    }
    let wrapped = key.wrap_for(&env, &edge.public()).unwrap();
    for at in 0..wrapped.as_bytes().len() {
        let mut bytes = wrapped.as_bytes().to_vec();
        bytes[at] ^= 0x40;
        assert!(!matches!(Wrapped::try_from(bytes).map(|w| edge.unwrap(&w)), Ok(Ok(_))), "wrapped byte {at}");
    }
}

#[test]
fn a_public_key_of_no_order_is_refused() {
    let env = env(1);
    assert_eq!(DistributionKey::generate(&env).wrap_for(&env, &[0; 32]), Err(DistributionError::BadPublicKey));
}

#[test]
fn a_key_goes_through_the_vault_as_one_secret_and_prints_only_its_id() {
    let key = DistributionKey::generate(&env(1));
    assert_eq!(DistributionKey::from_secret(&key.to_secret()).unwrap(), key);
    assert!(DistributionKey::from_secret(&Secret::new(vec![0; 47])).is_err());
    assert!(EdgeKeyPair::from_private(Secret::new(vec![0; 31])).is_err());
    assert_eq!(format!("{key:?}"), format!("DistributionKey({})", key.id()));
    let edge = EdgeKeyPair::generate(&env(2)).unwrap();
    assert!(!format!("{edge:?}").contains(&hex::encode(edge.private().expose())));
}

#[test]
fn a_key_id_travels_as_text() {
    let id = DistributionKey::generate(&env(1)).id();
    let json = serde_json::to_string(&id).unwrap();
    assert_eq!(json, format!("\"{id}\""));
    assert_eq!(serde_json::from_str::<DistributionKeyId>(&json).unwrap(), id);
    assert_eq!("12".parse::<DistributionKeyId>(), Err(NotAKeyId(2)));
}

proptest! {
    #[test]
    fn junk_never_opens_and_never_panics(mut junk in prop::collection::vec(any::<u8>(), 0..160), format_fits: bool) {
        if format_fits && let Some(first) = junk.first_mut() {
            *first = FORMAT;
        }
        let env = env(1);
        if let Ok(packet) = Packet::try_from(junk.clone()) {
            prop_assert!(DistributionKey::generate(&env).open(LABEL, &packet).is_err());
        }
        if let Ok(wrapped) = Wrapped::try_from(junk) {
            prop_assert!(EdgeKeyPair::generate(&env).unwrap().unwrap(&wrapped).is_err());
        }
    }
}
