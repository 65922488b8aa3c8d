//! An e-mail address, read strictly: what mail servers take without quotes, and nothing that could end a header line.

use super::vocabulary::vocabulary;

/// Why a text is no address that mail can be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmailError {
    /// Too long, or nothing.
    #[error("the address is {0} characters long; it must have 3 to 254")]
    Length(usize),
    /// No `@`, or several.
    #[error("an address has one @, with a name before it and a domain behind it, such as ops@acme.com")]
    Shape,
    /// What stands before the `@`.
    #[error(
        "the part before the @ may have up to 64 letters, digits and ! # $ % & ' * + - / = ? ^ _ ` {{ | }} ~, with dots between them"
    )]
    Local,
    /// What stands behind it.
    #[error("the part behind the @ must be a domain such as acme.com (internationalised names in their xn-- form)")]
    Domain,
}

vocabulary! {
    /// What is sent to a contact.
    ContactKind {
        /// What becomes of the tenant's domains.
        Domains = "domains",
        /// Certificates that end soon or cannot be renewed.
        Certificates = "certificates",
    }
}

/// The address with blanks around it taken away and its domain in lower case.
pub fn email(typed: &str) -> Result<String, EmailError> {
    let typed = typed.trim();
    let length = typed.chars().count();
    if !(3..=254).contains(&length) {
        return Err(EmailError::Length(length));
    }
    let (local, domain) = typed.split_once('@').ok_or(EmailError::Shape)?;
    if domain.contains('@') {
        return Err(EmailError::Shape);
    }
    let atom = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&b))
    };
    if local.len() > 64 || !local.split('.').all(atom) {
        return Err(EmailError::Local);
    }
    let domain = domain.to_ascii_lowercase();
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let labels: Vec<&str> = domain.split('.').collect();
    if labels.len() < 2 || domain.len() > 253 || !labels.iter().all(|one| label(one)) {
        return Err(EmailError::Domain);
    }
    Ok(format!("{local}@{domain}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_read_as_mail_servers_take_them() {
        assert_eq!(email(" Ops+dns@ACME.example "), Ok("Ops+dns@acme.example".into()));
        assert_eq!(email("a@b.co"), Ok("a@b.co".into()));
        for (typed, why) in [
            ("", EmailError::Length(0)),
            ("ops", EmailError::Shape),
            ("a@b@c.de", EmailError::Shape),
            ("@acme.com", EmailError::Local),
            ("a..b@acme.com", EmailError::Local),
            (".a@acme.com", EmailError::Local),
            ("a b@acme.com", EmailError::Local),
            ("a\r\nBcc:x@acme.com", EmailError::Local),
            ("a\u{202e}@acme.com", EmailError::Local),
            ("a\0@acme.com", EmailError::Local),
            ("<script>@acme.com", EmailError::Local),
            ("ops@localhost", EmailError::Domain),
            ("ops@acme.com\r\nX: y", EmailError::Domain),
            ("ops@-acme.com", EmailError::Domain),
            ("ops@b\u{fc}cher.de", EmailError::Domain),
            ("ops@acme..com", EmailError::Domain),
        ] {
            assert_eq!(email(typed), Err(why), "{typed:?}");
        }
        assert_eq!(email(&format!("{}@acme.com", "a".repeat(65))), Err(EmailError::Local));
        assert_eq!(email(&"a".repeat(10_000)), Err(EmailError::Length(10_000)));
    }

    proptest! {
        #[test]
        fn whatever_is_taken_has_no_character_that_acts(typed in "\\PC{0,40}|[ -~\r\n\t\0]{0,60}|[a-z.]{1,9}@[a-z.-]{1,20}") {
            if let Ok(read) = email(&typed) {
                prop_assert!(read.bytes().all(|b| (0x21..=0x7e).contains(&b) && !b"<>,;:\\\"()[]".contains(&b)));
                prop_assert_eq!(email(&read), Ok(read.clone()));
            }
        }
    }
}
