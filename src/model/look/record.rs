//! The resource records that the checks read.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A record type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the types' own")]
pub enum Kind {
    A,
    Aaaa,
    Caa,
    Cname,
    Dname,
    Https,
    Mx,
    Ns,
    Soa,
    Txt,
    /// A type none of the checks reads, by its number.
    Other(u16),
}

impl Kind {
    /// What vouches for a zone's keys at its parent (RFC 4034 §5); of it only the presence is read.
    pub const DS: Kind = Kind::Other(43);

    const NAMED: [(Kind, &'static str, u16); 10] = [
        (Kind::A, "A", 1),
        (Kind::Ns, "NS", 2),
        (Kind::Cname, "CNAME", 5),
        (Kind::Soa, "SOA", 6),
        (Kind::Mx, "MX", 15),
        (Kind::Txt, "TXT", 16),
        (Kind::Aaaa, "AAAA", 28),
        (Kind::Dname, "DNAME", 39),
        (Kind::Https, "HTTPS", 65),
        (Kind::Caa, "CAA", 257),
    ];

    /// From the type's name.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::NAMED.iter().find(|(_, n, _)| n.eq_ignore_ascii_case(name)).map(|(k, _, _)| *k)
    }

    /// From the type's number.
    pub fn numbered(number: u16) -> Kind {
        Kind::NAMED.iter().find(|(_, _, n)| *n == number).map_or(Kind::Other(number), |(k, _, _)| *k)
    }

    /// The type's number.
    pub fn number(self) -> u16 {
        match self {
            Kind::Other(n) => n,
            k => Kind::NAMED.iter().find(|(x, _, _)| *x == k).map_or(0, |(_, _, n)| *n),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Other(n) => write!(f, "TYPE{n}"),
            k => f.write_str(Kind::NAMED.iter().find(|(x, _, _)| x == k).map_or("", |(_, name, _)| name)),
        }
    }
}

/// A CAA property (RFC 8659 §4.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caa {
    /// The flags octet, all bits.
    pub flags: u8,
    /// The tag as it stands there.
    pub tag: String,
    /// The value's octets.
    pub value: Vec<u8>,
}

/// The parts of an SOA record that say how long negative answers live, and whose zone it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Soa {
    /// The primary server.
    pub primary: String,
    /// The mailbox, as a name.
    pub mailbox: String,
    /// The serial.
    pub serial: u32,
    /// The last field: the upper bound for negative answers (RFC 2308 §4).
    pub minimum: u32,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the variants are the record types")]
pub enum Data {
    A(Ipv4Addr),
    Aaaa(Ipv6Addr),
    Caa(Caa),
    Cname(String),
    Dname(String),
    /// Priority (0 = alias) and target name.
    Https(u16, String),
    Mx(u16, String),
    Ns(String),
    Soa(Soa),
    /// The character-strings of one record; they belong together (RFC 1035 §3.3.14).
    Txt(Vec<Vec<u8>>),
    /// A type none of the checks reads.
    Other(u16),
}

impl Data {
    /// The record's type.
    pub fn kind(&self) -> Kind {
        match self {
            Data::A(_) => Kind::A,
            Data::Aaaa(_) => Kind::Aaaa,
            Data::Caa(_) => Kind::Caa,
            Data::Cname(_) => Kind::Cname,
            Data::Dname(_) => Kind::Dname,
            Data::Https(..) => Kind::Https,
            Data::Mx(..) => Kind::Mx,
            Data::Ns(_) => Kind::Ns,
            Data::Soa(_) => Kind::Soa,
            Data::Txt(_) => Kind::Txt,
            Data::Other(n) => Kind::Other(*n),
        }
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Data::A(a) => a.fmt(f),
            Data::Aaaa(a) => a.fmt(f),
            Data::Caa(c) => write!(f, "{} {} \"{}\"", c.flags, c.tag, quoted(&c.value)),
            Data::Cname(n) | Data::Dname(n) | Data::Ns(n) => write!(f, "{n}."),
            Data::Https(p, n) | Data::Mx(p, n) => write!(f, "{p} {n}."),
            Data::Soa(s) => write!(f, "{}. {}. {} 7200 900 1209600 {}", s.primary, s.mailbox, s.serial, s.minimum),
            Data::Txt(strings) => {
                let parts: Vec<String> = strings.iter().map(|s| format!("\"{}\"", quoted(s))).collect();
                f.write_str(&parts.join(" "))
            }
            Data::Other(n) => write!(f, "TYPE{n}"),
        }
    }
}

/// Octets as they stand between the quotes of a master file (RFC 1035 §5.1): everything that is not plain ASCII is escaped, so
/// that what a stranger published can neither disguise itself nor do anything where it is shown.
pub fn quoted(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, &b| {
        match b {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(b));
            }
            0x20..=0x7e => out.push(char::from(b)),
            _ => out.push_str(&format!("\\{b:03}")),
        }
        out
    })
}

/// A resource record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rr {
    /// The owner.
    pub name: String,
    /// Seconds it may be kept.
    pub ttl: u32,
    /// What it says.
    pub data: Data,
}

impl fmt::Display for Rr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. {} IN {} {}", self.name, self.ttl, self.data.kind(), self.data)
    }
}
