//! The query of an apply link, as it is signed: every parameter encoded (RFC 3986), in the order of its name.

use crate::model::percent::encoded;

/// The query without signature. A parameter that stands twice would be read in two ways: the first one is kept.
pub fn canonical<'a>(parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut all: Vec<(String, String)> = Vec::new();
    for (name, value) in parameters {
        let name = encoded(name);
        if !all.iter().any(|(other, _)| *other == name) {
            all.push((name, encoded(value)));
        }
    }
    all.sort();
    let pairs: Vec<String> = all.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// The query with its signature, in base64, and the label at which the key is published.
pub fn signed(canonical: &str, signature: &str, key: &str) -> String {
    format!("{canonical}&sig={}&key={}", encoded(signature), encoded(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_is_that_of_the_specification() {
        let parameters = [("text", "a+b"), ("domain", "example.net"), ("a", "1"), ("ip", "10.10.10.10"), ("b", "2")];
        assert_eq!(canonical(parameters), "a=1&b=2&domain=example.net&ip=10.10.10.10&text=a%2Bb");
        assert_eq!(signed("a=1", "x+/=", "_dcpubkeyv1"), "a=1&sig=x%2B%2F%3D&key=_dcpubkeyv1");
    }

    #[test]
    fn nothing_escapes_from_a_value_and_nothing_stands_twice() {
        assert_eq!(canonical([("host", "a&domain=evil.example"), ("host", "b")]), "host=a%26domain%3Devil.example");
    }
}
