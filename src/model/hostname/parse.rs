//! The steps of the parser, each with its own refusal. Order matters: what people most probably did is told first.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use super::refusal::{invisible, seen};
use super::{HostnameError, NameRules};

/// The ownership record's label goes in front: `_nameplate-challenge.` is 21 of the 253 bytes that DNS allows.
const LONGEST: usize = 232;

/// More than any spelling of a name that could pass; longer input is not worth the work.
const LONGEST_INPUT: usize = 4096;

type Parsed = Result<String, HostnameError>;

pub(super) fn parse(input: &str, rules: &NameRules) -> Parsed {
    let text = input.trim_matches(|c: char| c.is_ascii_whitespace());
    if text.is_empty() {
        return Err(refuse("hostname_empty", "The hostname is empty. Type a name such as support.example.com."));
    }
    if text.len() > LONGEST_INPUT {
        return Err(too_long(text, text.len()));
    }
    refuse_invisible(text, rules)?;
    if let Some(bare) = undressed(text) {
        return Err(refuse_dressed(text, bare, rules));
    }
    refuse_address(text)?;
    if text.contains('*') {
        return Err(refuse(
            "hostname_wildcard",
            format!(
                "{} is a wildcard. Wildcards need proof by DNS-01, which is not offered yet; add each name by itself.",
                seen(text)
            ),
        )
        .suggest(text.strip_prefix("*.").filter(|rest| !rest.contains('*')).and_then(|rest| passing(rest, rules))));
    }
    refuse_underscore(text, rules)?;
    let ascii = to_ascii(text, rules)?;
    refuse_address(&ascii)?;
    check_shape(text, &ascii)?;
    check_home(&ascii, rules)?;
    Ok(ascii)
}

/// U-labels of an A-label name, if every label is valid and visible.
pub(super) fn to_unicode(ascii: &str) -> Option<String> {
    let (name, valid) = Uts46::new().to_unicode(ascii.as_bytes(), AsciiDenyList::STD3, Hyphens::Check);
    valid.ok().map(|()| name.into_owned())
}

fn refuse(code: &'static str, message: impl Into<String>) -> HostnameError {
    HostnameError::new(code, message.into())
}

/// The name as shown, if it would be accepted as it stands.
fn passing(candidate: &str, rules: &NameRules) -> Option<String> {
    parse(candidate, rules).ok().map(|ascii| to_unicode(&ascii).unwrap_or(ascii))
}

fn refuse_invisible(text: &str, rules: &NameRules) -> Result<(), HostnameError> {
    if let Some((c, what)) = text.chars().find_map(|c| invisible(c).map(|what| (c, what))) {
        let clean: String = text.chars().filter(|c| invisible(*c).is_none()).collect();
        let message =
            format!("{} holds a {what} (U+{:04X}), which cannot be seen. Type the name by hand.", seen(text), u32::from(c));
        return Err(refuse("hostname_invisible_character", message).suggest(passing(&clean, rules)));
    }
    if text.contains(char::is_whitespace) {
        let message = format!("{} holds a blank. Type one hostname, without blanks.", seen(text));
        let first = text.split_whitespace().find_map(|word| passing(word, rules));
        return Err(refuse("hostname_has_blank", message).suggest(first));
    }
    Ok(())
}

/// What a name can be dressed in when it comes out of an address bar or a mail.
#[derive(Clone, Copy)]
enum Dress {
    Url,
    Path,
    User,
    Port,
}

/// The host inside a URL, path, address or port notation; `None` for a bare text.
fn undressed(text: &str) -> Option<(Dress, &str)> {
    let (mut dress, mut rest) = match text.split_once("//") {
        Some((scheme, rest)) if scheme.is_empty() || scheme.ends_with(':') => (Some(Dress::Url), rest),
        _ => (None, text),
    };
    if let Some(end) = rest.find(['/', '?', '#', '\\']) {
        rest = &rest[..end];
        dress = dress.or(Some(Dress::Path));
    }
    if let Some((scheme, address)) = rest.split_once(':')
        && scheme.eq_ignore_ascii_case("mailto")
    {
        rest = address;
    }
    if let Some((_, host)) = rest.rsplit_once('@') {
        rest = host;
        dress = dress.or(Some(Dress::User));
    }
    if !is_ipv6(rest)
        && let Some((host, _)) = rest.split_once(':')
        && !host.is_empty()
    {
        rest = host;
        dress = dress.or(Some(Dress::Port));
    }
    dress.map(|dress| (dress, rest))
}

fn refuse_dressed(text: &str, (dress, bare): (Dress, &str), rules: &NameRules) -> HostnameError {
    let (code, what) = match dress {
        Dress::Url => ("hostname_is_url", "is a URL"),
        Dress::Path => ("hostname_has_path", "has a path"),
        Dress::User => ("hostname_has_user", "has an @, like a mail address"),
        Dress::Port => ("hostname_has_port", "has a port"),
    };
    // What is left has no slash, no @ and no colon, so this goes one level deep.
    match passing(bare, rules) {
        Some(name) => refuse(code, format!("{} {what}. Only the hostname is wanted.", seen(text))).suggest(Some(name)),
        None => refuse(code, format!("{} {what}. Only a hostname is wanted, such as support.example.com.", seen(text))),
    }
}

fn is_ipv6(text: &str) -> bool {
    let bare = text.strip_prefix('[').and_then(|t| t.split(']').next()).unwrap_or(text);
    let bare = bare.split('%').next().unwrap_or(bare);
    bare.parse::<Ipv6Addr>().is_ok()
}

fn refuse_address(text: &str) -> Result<(), HostnameError> {
    let last = text.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    // Whatever ends in a number is an IPv4 address to a browser: 192.0.2.10, 127.1, 2130706433, 0x7f000001.
    let ends_in_a_number = (!last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()))
        || hex.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    if text.parse::<Ipv4Addr>().is_ok() || is_ipv6(text) || ends_in_a_number {
        return Err(refuse(
            "hostname_is_ip",
            format!(
                "{} is an IP address. A custom domain needs a name; make a DNS name and type that, such as support.example.com.",
                seen(text)
            ),
        ));
    }
    Ok(())
}

fn refuse_underscore(text: &str, rules: &NameRules) -> Result<(), HostnameError> {
    if !text.contains('_') {
        return Ok(());
    }
    let service_label = |label: &&str| label.starts_with('_');
    let suggestion = if text.starts_with('_') {
        let rest: Vec<&str> = text.split('.').skip_while(service_label).collect();
        passing(&rest.join("."), rules)
    } else {
        passing(&text.replace('_', "-"), rules)
    };
    Err(refuse(
        "hostname_underscore",
        format!(
            "{} has a “_”, which no certificate may carry. Type the name that visitors use: letters, digits and hyphens.",
            seen(text)
        ),
    )
    .suggest(suggestion))
}

/// Maps to A-labels by UTS 46 (non-transitional, as browsers do) and proves that the way back leads to the same name.
fn to_ascii(text: &str, rules: &NameRules) -> Parsed {
    let dotted: Cow<'_, str> = if text.is_ascii() { text.into() } else { text.replace(['。', '．', '｡'], ".").into() };
    let bare = dotted.strip_suffix('.').unwrap_or(&dotted);
    if bare.split('.').any(str::is_empty) {
        let labels: Vec<&str> = bare.split('.').filter(|label| !label.is_empty()).collect();
        let message = format!("{} has two dots in a row, or begins with one: a label is missing.", seen(text));
        return Err(refuse("hostname_empty_label", message).suggest(passing(&labels.join("."), rules)));
    }
    if let Some(c) = bare.chars().find(|c| c.is_ascii() && !c.is_ascii_alphanumeric() && !matches!(c, '-' | '.')) {
        return Err(refuse(
            "hostname_bad_character",
            format!(
                "{} has a “{c}”. A hostname holds letters, digits and hyphens, and dots between its labels.",
                seen(text)
            ),
        ));
    }
    let outer_hyphen = |label: &&str| (label.starts_with('-') || label.ends_with('-')) && !is_encoded(label);
    if let Some(label) = bare.split('.').find(outer_hyphen) {
        let trimmed: Vec<&str> = bare.split('.').map(|label| label.trim_matches('-')).collect();
        let message = format!("The label {} of {} begins or ends with a hyphen.", seen(label), seen(text));
        return Err(refuse("hostname_hyphen", message).suggest(passing(&trimmed.join("."), rules)));
    }
    let idna = Uts46::new();
    let ascii = idna
        .to_ascii(bare.as_bytes(), AsciiDenyList::STD3, Hyphens::Check, DnsLength::Ignore)
        .map_err(|_| not_idna(text, bare))?;
    let ascii = ascii.strip_suffix('.').unwrap_or(&ascii).to_owned();
    if ascii.split('.').any(str::is_empty) {
        return Err(refuse("hostname_empty_label", format!("{} has a label with nothing in it.", seen(text))));
    }
    let shown = to_unicode(&ascii).ok_or_else(|| not_idna(text, bare))?;
    if shown.chars().any(|c| invisible(c).is_some()) {
        return Err(refuse(
            "hostname_invisible_character",
            format!("{} stands for a name with characters that cannot be seen.", seen(text)),
        ));
    }
    let back = idna.to_ascii(shown.as_bytes(), AsciiDenyList::STD3, Hyphens::Check, DnsLength::Ignore);
    if back.ok().as_deref() != Some(&ascii) {
        return Err(not_idna(text, bare));
    }
    Ok(ascii)
}

fn is_encoded(label: &str) -> bool {
    label.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--"))
}

fn not_idna(text: &str, bare: &str) -> HostnameError {
    let third_and_fourth = |label: &&str| label.get(2..4) == Some("--") && !is_encoded(label);
    if let Some(label) = bare.split('.').find(third_and_fourth) {
        return refuse(
            "hostname_hyphen",
            format!("The label {} has hyphens in the third and fourth place, which is kept for encoded names.", seen(label)),
        );
    }
    refuse(
        "hostname_not_idna",
        format!(
            "{} is not a valid internationalised name (UTS 46): a character that names may not hold, mixed writing directions, or a damaged xn-- label. Copy the name from your registrar.",
            seen(text)
        ),
    )
}

fn too_long(text: &str, length: usize) -> HostnameError {
    refuse(
        "hostname_too_long",
        format!(
            "{} is {length} bytes long. At most {LONGEST} fit, because the ownership record's own label goes in front. Use a shorter name.",
            seen(text)
        ),
    )
}

fn check_shape(text: &str, ascii: &str) -> Result<(), HostnameError> {
    if ascii.len() > LONGEST {
        return Err(too_long(text, ascii.len()));
    }
    if let Some(label) = ascii.split('.').find(|label| label.len() > 63) {
        return Err(refuse(
            "hostname_label_too_long",
            format!("The label {} is {} bytes long; DNS allows 63. Use a shorter one.", seen(label), label.len()),
        ));
    }
    if !ascii.contains('.') {
        return Err(refuse(
            "hostname_single_label",
            format!("{} is one word without a dot. Type the full name, such as support.example.com.", seen(text)),
        ));
    }
    Ok(())
}

/// Whether the name lies somewhere a customer can own it.
fn check_home(ascii: &str, rules: &NameRules) -> Result<(), HostnameError> {
    if let Some(zone) = rules.reserved_zones.iter().find(|zone| within(ascii, zone)) {
        return Err(refuse(
            "hostname_reserved",
            format!("{} belongs to the platform itself ({zone}). Type a name of your own domain.", seen(ascii)),
        ));
    }
    let extra = rules.extra_suffixes.iter().find(|suffix| within(ascii, suffix));
    let suffix = psl::suffix(ascii.as_bytes()).filter(psl::Suffix::is_known).map(|s| String::from_utf8_lossy(s.as_bytes()));
    match (extra, suffix) {
        (Some(suffix), _) if suffix != ascii => Ok(()),
        (None, Some(suffix)) if suffix != ascii => Ok(()),
        (None, None) => Err(refuse(
            "hostname_unknown_suffix",
            format!(
                "{} ends in “.{}”, which is not on the public suffix list, so no public CA would certify it. Check the spelling.",
                seen(ascii),
                ascii.rsplit('.').next().unwrap_or_default()
            ),
        )),
        _ => Err(refuse(
            "hostname_is_public_suffix",
            format!("{} is a public suffix: names are registered beneath it. Type the name you registered.", seen(ascii)),
        )),
    }
}

fn within(name: &str, zone: &str) -> bool {
    name == zone || name.strip_suffix(zone).is_some_and(|front| front.ends_with('.'))
}
