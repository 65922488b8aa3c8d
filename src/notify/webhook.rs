//! The request of a delivery, by the Standard Webhooks scheme (standardwebhooks.com, v1).
//!
//! Signed is `ID.TIMESTAMP.BODY`, by HMAC-SHA256 under the bytes that `whsec_` and base64 stand for. While a secret is being
//! replaced there are two signatures, the newer one first. The id is the event's and stays the same from try to try, so that
//! whoever got one twice can tell; the timestamp is of the try.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::env::Env;
use crate::model::moment::Moment;
use crate::model::secret::Secret;

/// What a secret begins with.
pub const PREFIX: &str = "whsec_";
/// Bytes of a secret.
const BYTES: usize = 32;

/// The headers.
pub const ID: &str = "webhook-id";
/// See [`ID`].
pub const TIMESTAMP: &str = "webhook-timestamp";
/// See [`ID`].
pub const SIGNATURE: &str = "webhook-signature";

/// A new secret, as it is shown.
pub fn new_secret(env: &Env) -> Secret {
    Secret::from(format!("{PREFIX}{}", STANDARD.encode(env.draw::<BYTES>())))
}

/// One signature: `v1,` and base64; none for a secret that is none.
fn signature(secret: &Secret, id: &str, timestamp: i64, body: &[u8]) -> Option<String> {
    let bytes = STANDARD.decode(secret.expose_str()?.strip_prefix(PREFIX)?).ok()?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
    let mut signed = hmac::Context::with_key(&key);
    signed.update(format!("{id}.{timestamp}.").as_bytes());
    signed.update(body);
    Some(format!("v1,{}", STANDARD.encode(signed.sign())))
}

/// The headers of a request. `secrets` are those that are good now, the newest first.
pub fn headers(secrets: &[Secret], id: &str, now: Moment, body: &[u8]) -> Vec<(&'static str, String)> {
    let timestamp = now.secs();
    let all: Vec<String> = secrets.iter().filter_map(|secret| signature(secret, id, timestamp, body)).collect();
    vec![(ID, id.to_owned()), (TIMESTAMP, timestamp.to_string()), (SIGNATURE, all.join(" "))]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector of the reference implementations' tests.
    #[test]
    fn signatures_are_those_of_the_scheme() {
        let secret = Secret::from("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let told =
            headers(&[secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", Moment::from_secs(1_614_265_330), br#"{"test": 2432232314}"#);
        assert_eq!(told[0], (ID, "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned()));
        assert_eq!(told[1], (TIMESTAMP, "1614265330".to_owned()));
        assert_eq!(told[2], (SIGNATURE, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=".to_owned()));
    }

    #[test]
    fn two_secrets_make_two_signatures_and_no_secret_none() {
        let env = crate::env::manual::Hand::new(Moment::from_secs(5), 1).env();
        let (new, old) = (new_secret(&env), new_secret(&env));
        let told = headers(&[new.clone(), old.clone()], "evt_1", Moment::from_secs(5), b"{}");
        let alone =
            |secret: &Secret| headers(std::slice::from_ref(secret), "evt_1", Moment::from_secs(5), b"{}").remove(2).1;
        assert_eq!(told[2].1, format!("{} {}", alone(&new), alone(&old)));
        assert_ne!(alone(&new), alone(&old));
        assert_eq!(headers(&[Secret::from("no secret".to_owned())], "evt_1", Moment::from_secs(5), b"{}")[2].1, "");
        assert_eq!(new.expose_str().unwrap().len(), PREFIX.len() + 44);
    }
}
