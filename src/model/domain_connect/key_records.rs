//! The public key as TXT records, at `<key>.<syncPubKeyDomain>`: in pieces, since one string holds 255 octets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The most of the key in one record: with what stands before it, one string.
const PIECE: usize = 216;

/// The texts of the records for a public key (SubjectPublicKeyInfo, DER).
pub fn key_records(public_key: &[u8]) -> Vec<String> {
    let text = STANDARD.encode(public_key);
    // Base64 is ASCII: every octet is a character.
    let pieces = text.as_bytes().chunks(PIECE).map(|piece| String::from_utf8_lossy(piece));
    pieces.enumerate().map(|(n, piece)| format!("p={},a=RS256,d={piece}", n + 1)).collect()
}

/// The public key that records hold, as a provider reads them; `None` where they are not one RS256 key.
pub fn public_key(records: &[String]) -> Option<Vec<u8>> {
    let mut pieces: Vec<(u32, String)> = Vec::new();
    for record in records {
        let (mut index, mut data) = (None, None);
        for pair in record.split(',') {
            match pair.trim().split_once('=')? {
                ("p", value) => index = value.parse::<u32>().ok().filter(|n| *n > 0),
                ("d", value) => data = Some(value.to_owned()),
                ("a", value) if value != "RS256" => return None,
                ("t", value) if value != "x509" => return None,
                _ => {}
            }
        }
        pieces.push((index?, data?));
    }
    pieces.sort();
    let distinct = pieces.windows(2).all(|pair| pair[0].0 != pair[1].0);
    let text: String = pieces.into_iter().map(|(_, data)| data).collect();
    if distinct && !text.is_empty() { STANDARD.decode(text).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_key_comes_back_whatever_the_order_of_its_records(key in proptest::collection::vec(any::<u8>(), 1..600)) {
            let mut records = key_records(&key);
            prop_assert!(records.iter().all(|r| r.len() <= 255));
            records.reverse();
            prop_assert_eq!(public_key(&records), Some(key));
        }

        #[test]
        fn any_text_is_read_without_panic(text in "\\PC{0,60}") {
            let _ = public_key(&[text]);
        }
    }

    #[test]
    fn two_keys_at_one_name_are_none() {
        let twice = ["p=1,d=AAAA".to_owned(), "p=1,d=BBBB".to_owned()];
        assert_eq!(public_key(&twice), None);
        assert_eq!(public_key(&["p=1,a=ES256,d=AAAA".to_owned()]), None);
        assert_eq!(public_key(&[]), None);
    }
}
