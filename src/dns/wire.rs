//! Between our records and the wire format: hickory's messages on one side, plain data on the other.

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::opt::{EdnsCode, EdnsOption};
use hickory_proto::rr::rdata::{A, AAAA, CAA, CNAME, HTTPS, MX, NS, NULL, SOA, SVCB, TXT};
use hickory_proto::rr::{Name, RData, Record, RecordType};

use crate::model::look::{Answer, Caa, Data, Kind, Outcome, Rr, Soa, name};

/// The UDP payload we offer and use: below every usual path limit.
pub const UDP_PAYLOAD: u16 = 1232;

/// The number of the extended error option (RFC 8914).
const EXTENDED_ERROR: u16 = 15;

/// Something that does not fit on the wire, or off it.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// A name that cannot be encoded.
    #[error("{0:?} cannot be written as a DNS name")]
    Name(String),
    /// A message hickory cannot write.
    #[error("the message cannot be encoded")]
    Encode(#[from] hickory_proto::ProtoError),
    /// Octets that are no message.
    #[error("the octets are no DNS message: {0}")]
    Decode(String),
    /// A message that answers something else.
    #[error("the message does not answer this question")]
    NotOurs,
}

/// A question as a server receives it.
#[derive(Clone, Debug)]
pub struct Asked {
    id: u16,
    question: Query,
    recursion: bool,
    checking_disabled: bool,
    /// The payload the client takes by UDP; none without EDNS.
    payload: Option<u16>,
    /// The name, canonical.
    pub name: String,
    /// The type.
    pub kind: Kind,
}

impl Asked {
    /// Whether the client wants an answer whatever its signatures.
    pub fn unchecked(&self) -> bool {
        self.checking_disabled
    }

    /// Whether the client speaks EDNS.
    pub fn extended(&self) -> bool {
        self.payload.is_some()
    }

    /// How large a UDP answer may be.
    pub fn udp_limit(&self) -> usize {
        usize::from(self.payload.unwrap_or(512).clamp(512, UDP_PAYLOAD))
    }
}

fn to_name(text: &str) -> Result<Name, WireError> {
    let labels = name::labels(text).ok_or_else(|| WireError::Name(text.to_owned()))?;
    Name::from_labels(labels).map_err(|_| WireError::Name(text.to_owned()))
}

fn from_name(name: &Name) -> String {
    name::from_labels(name.iter())
}

fn edns() -> Edns {
    let mut edns = Edns::new();
    edns.set_max_payload(UDP_PAYLOAD);
    edns.set_version(0);
    edns
}

/// A question in octets. Asks for the AD bit (RFC 6840 §5.7).
pub fn query(id: u16, asked: &str, kind: Kind, recursion: bool) -> Result<Vec<u8>, WireError> {
    let mut message = question(id, asked, kind, recursion)?;
    message.set_edns(edns());
    Ok(message.to_vec()?)
}

/// A question to a resolver that is to answer without checking signatures (RFC 4035 §3.2.2).
pub fn query_unchecked(id: u16, asked: &str, kind: Kind) -> Result<Vec<u8>, WireError> {
    let mut message = question(id, asked, kind, true)?;
    message.metadata.checking_disabled = true;
    message.set_edns(edns());
    Ok(message.to_vec()?)
}

/// A question without EDNS, for servers that do not know it (RFC 6891 §7).
pub fn query_plain(id: u16, asked: &str, kind: Kind, recursion: bool) -> Result<Vec<u8>, WireError> {
    Ok(question(id, asked, kind, recursion)?.to_vec()?)
}

fn question(id: u16, asked: &str, kind: Kind, recursion: bool) -> Result<Message, WireError> {
    let mut message = Message::new(id, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = recursion;
    message.metadata.authentic_data = recursion;
    message.add_query(Query::query(to_name(asked)?, RecordType::from(kind.number())));
    Ok(message)
}

/// An answer from octets, and whether it was cut.
pub fn answer(octets: &[u8], id: u16, asked: &str, kind: Kind) -> Result<(Answer, bool), WireError> {
    let message = Message::from_vec(octets).map_err(|e| WireError::Decode(e.to_string()))?;
    let meta = &message.metadata;
    let same = |q: &Query| from_name(q.name()) == asked && u16::from(q.query_type()) == kind.number();
    // A server that cannot read a question may leave it out of its error.
    let ours = message.queries.first().map_or(meta.response_code != ResponseCode::NoError, same);
    if meta.id != id || meta.message_type != MessageType::Response || !ours {
        return Err(WireError::NotOurs);
    }
    let records = |all: &[Record]| all.iter().map(from_record).collect::<Vec<Rr>>();
    let ede = message.edns.iter().flat_map(|e| e.options().get_all(EdnsCode::Unknown(EXTENDED_ERROR)));
    let ede = ede.filter_map(|option| match option {
        EdnsOption::Unknown(_, octets) => octets.first_chunk::<2>().map(|code| u16::from_be_bytes(*code)),
        _ => None,
    });
    let answer = Answer {
        outcome: outcome(meta.response_code),
        authoritative: meta.authoritative,
        validated: meta.authentic_data,
        ede: ede.collect(),
        records: records(&message.answers),
        authority: records(&message.authorities),
        additional: records(&message.additionals),
        size: octets.len(),
    };
    Ok((answer, meta.truncation))
}

fn outcome(code: ResponseCode) -> Outcome {
    match code {
        ResponseCode::NoError => Outcome::NoError,
        ResponseCode::NXDomain => Outcome::NxDomain,
        ResponseCode::ServFail => Outcome::ServFail,
        ResponseCode::Refused => Outcome::Refused,
        ResponseCode::NotImp => Outcome::NotImp,
        other => Outcome::Other(other.into()),
    }
}

/// A question from octets; `None` for what deserves no answer.
pub fn asked(octets: &[u8]) -> Option<Asked> {
    let message = Message::from_vec(octets).ok()?;
    if message.metadata.message_type != MessageType::Query || message.metadata.op_code != OpCode::Query {
        return None;
    }
    let question = message.queries.first()?.clone();
    Some(Asked {
        id: message.metadata.id,
        recursion: message.metadata.recursion_desired,
        checking_disabled: message.metadata.checking_disabled,
        payload: message.edns.as_ref().map(Edns::max_payload),
        name: from_name(question.name()),
        kind: Kind::numbered(question.query_type().into()),
        question,
    })
}

/// An answer in octets; cut to the bare question with the TC bit when it is larger than `limit`.
pub fn reply(asked: &Asked, answer: &Answer, recursive: bool, limit: usize) -> Result<Vec<u8>, WireError> {
    let mut message = head(asked, recursive);
    message.metadata.response_code = match answer.outcome {
        Outcome::NoError => ResponseCode::NoError,
        Outcome::NxDomain => ResponseCode::NXDomain,
        Outcome::Refused => ResponseCode::Refused,
        Outcome::NotImp => ResponseCode::NotImp,
        Outcome::Other(code) => code.into(),
        Outcome::ServFail | Outcome::Timeout | Outcome::Truncated | Outcome::Unusable(_) => ResponseCode::ServFail,
    };
    message.metadata.authoritative = answer.authoritative;
    message.metadata.authentic_data = answer.validated;
    for rr in &answer.records {
        message.add_answer(to_record(rr)?);
    }
    for rr in &answer.authority {
        message.add_authority(to_record(rr)?);
    }
    for rr in &answer.additional {
        message.add_additional(to_record(rr)?);
    }
    if let Some(edns) = message.edns.as_mut() {
        for code in &answer.ede {
            edns.options_mut().insert(EdnsOption::Unknown(EXTENDED_ERROR, code.to_be_bytes().to_vec()));
        }
    }
    let octets = message.to_vec()?;
    if octets.len() > limit { cut(asked, recursive) } else { Ok(octets) }
}

/// An empty answer with the TC bit.
pub fn cut(asked: &Asked, recursive: bool) -> Result<Vec<u8>, WireError> {
    let mut message = head(asked, recursive);
    message.metadata.truncation = true;
    Ok(message.to_vec()?)
}

fn head(asked: &Asked, recursive: bool) -> Message {
    let mut message = Message::new(asked.id, MessageType::Response, OpCode::Query);
    message.metadata.recursion_desired = asked.recursion;
    message.metadata.recursion_available = recursive;
    message.metadata.checking_disabled = asked.checking_disabled;
    message.add_query(asked.question.clone());
    if asked.payload.is_some() {
        message.set_edns(edns());
    }
    message
}

fn from_record(record: &Record) -> Rr {
    let data = match &record.data {
        RData::A(a) => Data::A(a.0),
        RData::AAAA(a) => Data::Aaaa(a.0),
        RData::CNAME(n) => Data::Cname(from_name(&n.0)),
        RData::NS(n) => Data::Ns(from_name(&n.0)),
        RData::MX(mx) => Data::Mx(mx.preference, from_name(&mx.exchange)),
        RData::TXT(txt) => Data::Txt(txt.txt_data.iter().map(|s| s.to_vec()).collect()),
        RData::CAA(caa) => Data::Caa(Caa { flags: caa.flags(), tag: caa.tag.clone(), value: caa.value.clone() }),
        RData::HTTPS(https) => Data::Https(https.0.svc_priority, from_name(&https.0.target_name)),
        RData::SOA(soa) => Data::Soa(Soa {
            primary: from_name(&soa.mname),
            mailbox: from_name(&soa.rname),
            serial: soa.serial,
            minimum: soa.minimum,
        }),
        RData::Unknown { code, rdata } if u16::from(*code) == Kind::Dname.number() => {
            plain_name(&rdata.anything).map_or(Data::Other(Kind::Dname.number()), Data::Dname)
        }
        other => Data::Other(other.record_type().into()),
    };
    Rr { name: from_name(&record.name), ttl: record.ttl, data }
}

/// A name in uncompressed octets, as DNAME data has it.
fn plain_name(octets: &[u8]) -> Option<String> {
    let mut labels = Vec::new();
    let mut rest = octets;
    loop {
        let (length, after) = rest.split_first()?;
        if *length == 0 {
            return after.is_empty().then(|| name::from_labels(labels));
        }
        let (label, after) = after.split_at_checked(usize::from(*length))?;
        labels.push(label);
        rest = after;
    }
}

fn to_record(rr: &Rr) -> Result<Record, WireError> {
    let data = match &rr.data {
        Data::A(a) => RData::A(A(*a)),
        Data::Aaaa(a) => RData::AAAA(AAAA(*a)),
        Data::Cname(n) => RData::CNAME(CNAME(to_name(n)?)),
        Data::Ns(n) => RData::NS(NS(to_name(n)?)),
        Data::Mx(p, n) => RData::MX(MX::new(*p, to_name(n)?)),
        Data::Txt(strings) => RData::TXT(TXT::from_bytes(strings.iter().map(Vec::as_slice).collect())),
        Data::Caa(caa) => {
            // The type has no other constructor that takes any tag.
            let mut data = CAA::new_issue(caa.flags & 128 != 0, None, Vec::new());
            data.reserved_flags = caa.flags & 127;
            data.tag.clone_from(&caa.tag);
            data.value.clone_from(&caa.value);
            RData::CAA(data)
        }
        Data::Https(p, n) => RData::HTTPS(HTTPS(SVCB::new(*p, to_name(n)?, Vec::new()))),
        Data::Soa(s) => {
            RData::SOA(SOA::new(to_name(&s.primary)?, to_name(&s.mailbox)?, s.serial, 7200, 900, 1_209_600, s.minimum))
        }
        Data::Dname(n) => {
            let labels = name::labels(n).ok_or_else(|| WireError::Name(n.clone()))?;
            let mut octets = Vec::new();
            for label in labels {
                octets.push(u8::try_from(label.len()).map_err(|_| WireError::Name(n.clone()))?);
                octets.extend(label);
            }
            octets.push(0);
            RData::Unknown { code: RecordType::from(Kind::Dname.number()), rdata: NULL::with(octets) }
        }
        // A record without any data is taken for a part of an update (RFC 2136).
        Data::Other(n) => RData::Unknown { code: RecordType::from(*n), rdata: NULL::with(vec![0]) },
    };
    Ok(Record::from_rdata(to_name(&rr.name)?, rr.ttl, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_record_survives_the_wire() {
        let lines = [
            "x.example.com. 60 IN A 192.0.2.1",
            "x.example.com. 60 IN AAAA 2001:db8::1",
            "x.example.com. 60 IN CNAME https://edge.platform.example.",
            "x.example.com. 60 IN DNAME example.net.",
            "x.example.com. 60 IN CAA 1 fuTure \"a; b=\\255\"",
            "x.example.com. 60 IN HTTPS 0 pool.example.",
            "x.example.com. 60 IN MX 10 mail.example.",
            "x.example.com. 60 IN NS ns1.example.",
            "x.example.com. 60 IN TXT \"one\" \"\\\"two\\\"\" \"\"",
            "x.example.com. 60 IN SOA ns1.example. host.example. 7 7200 900 1209600 300",
        ];
        let records: Vec<Rr> = lines.iter().map(|l| crate::dns::world::line::parse(l).unwrap()).collect();
        let octets = query(7, "x.example.com", Kind::Caa, true).unwrap();
        let question = asked(&octets).unwrap();
        assert_eq!((question.name.as_str(), question.kind, question.udp_limit()), ("x.example.com", Kind::Caa, 1232));
        let sent = Answer { records, ede: vec![6, 22], authoritative: true, ..Answer::bare(Outcome::ServFail) };
        let octets = reply(&question, &sent, false, 65_535).unwrap();
        let (got, was_cut) = answer(&octets, 7, "x.example.com", Kind::Caa).unwrap();
        assert!(!was_cut);
        assert_eq!(got, Answer { size: octets.len(), ..sent.clone() });
        let (short, was_cut) = answer(&reply(&question, &sent, false, 100).unwrap(), 7, "x.example.com", Kind::Caa).unwrap();
        assert!(was_cut && short.records.is_empty());
        assert!(matches!(answer(&octets, 8, "x.example.com", Kind::Caa), Err(WireError::NotOurs)));
        assert!(matches!(answer(&octets, 7, "y.example.com", Kind::Caa), Err(WireError::NotOurs)));
    }

    /// A real answer with every kind of record.
    fn sample() -> Vec<u8> {
        let lines = [
            "x.example.com. 60 IN CNAME y.example.com.",
            "y.example.com. 60 IN DNAME example.net.",
            "y.example.com. 60 IN A 192.0.2.1",
            "y.example.com. 60 IN CAA 0 issue \"ca.example; a=b\"",
            "y.example.com. 60 IN HTTPS 1 pool.example.",
            "y.example.com. 60 IN TXT \"one\" \"two\"",
            "example.com. 60 IN SOA ns1.example. host.example. 7 7200 900 1209600 300",
        ];
        let records = lines.iter().map(|l| crate::dns::world::line::parse(l).unwrap()).collect();
        let question = asked(&query(7, "x.example.com", Kind::Txt, true).unwrap()).unwrap();
        reply(&question, &Answer { records, ede: vec![6], ..Answer::bare(Outcome::NoError) }, false, 65_535).unwrap()
    }

    #[test]
    fn rubbish_behind_the_message_adds_nothing() {
        let octets = sample();
        let (whole, _) = answer(&octets, 7, "x.example.com", Kind::Txt).unwrap();
        let longer = [&octets[..], &[0xff; 300][..]].concat();
        if let Ok((got, _)) = answer(&longer, 7, "x.example.com", Kind::Txt) {
            assert_eq!(got, Answer { size: longer.len(), ..whole });
        }
    }

    #[test]
    fn pointers_that_go_round_or_forward_are_refused() {
        let head = [0, 7, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for name in [&[0xc0, 12][..], &[0xc0, 14, 0xc0, 12], &[1, b'a', 0xc0, 12], &[0xc0, 200], &[0x80, 1], &[63]] {
            let octets = [&head[..], name, &[0, 1, 0, 1]].concat();
            assert!(matches!(answer(&octets, 7, "a", Kind::A), Err(WireError::Decode(_))), "{name:?}");
            assert!(asked(&octets).is_none(), "{name:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_damaged_answer_is_read_without_panic_and_its_names_stay_names(
            flips in proptest::collection::vec((0usize..400, proptest::num::u8::ANY), 1..12),
            keep in 0usize..500,
            tail in proptest::collection::vec(proptest::num::u8::ANY, 0..20),
        ) {
            let mut octets = sample();
            for (at, value) in flips {
                let at = at % octets.len();
                octets[at] = value;
            }
            octets.truncate(keep.max(12));
            octets.extend(tail);
            let id = u16::from_be_bytes([octets[0], octets[1]]);
            if let Ok((got, _)) = answer(&octets, id, "x.example.com", Kind::Txt) {
                for rr in got.records.iter().chain(&got.authority).chain(&got.additional) {
                    proptest::prop_assert!(name::labels(&rr.name).is_some() || rr.name.is_empty(), "{}", rr.name);
                    proptest::prop_assert!(rr.to_string().bytes().all(|b| (0x20..=0x7e).contains(&b)), "{}", rr);
                }
            }
            let _ = asked(&octets);
        }

        #[test]
        fn dname_data_is_a_whole_name_or_none(octets in proptest::collection::vec(proptest::num::u8::ANY, 0..80)) {
            if let Some(text) = plain_name(&octets) {
                proptest::prop_assert!(octets.ends_with(&[0]) && text.bytes().all(|b| (0x21..=0x7e).contains(&b)), "{}", text);
            }
        }

        #[test]
        fn a_question_survives_the_wire(
            labels in proptest::collection::vec(proptest::collection::vec(proptest::num::u8::ANY, 1..=63), 1..6),
            id: u16, number: u16,
        ) {
            let asked_name = name::from_labels(labels.iter().map(Vec::as_slice));
            match query(id, &asked_name, Kind::numbered(number), false) {
                Ok(octets) => {
                    // An OPT or a signature is no question's type; hickory keeps whatever stands there.
                    let got = asked(&octets).unwrap();
                    proptest::prop_assert_eq!((got.name, got.kind.number()), (asked_name, number));
                }
                Err(e) => proptest::prop_assert!(name::labels(&asked_name).is_none(), "{}", e),
            }
        }

        #[test]
        fn any_octets_are_read_without_panic(octets in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let _ = (asked(&octets), answer(&octets, 1, "x", Kind::A));
        }
    }
}
