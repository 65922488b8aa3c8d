//! `mail`: the server that messages are handed to, and who among the operators gets them.

use std::path::PathBuf;
use std::time::Duration;

use super::reader::Reader;
use super::setting::Setting;
use crate::model::alert::kinds::of_operators;
use crate::model::email::email;
use crate::model::secret::Secret;

/// How the connection is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailTls {
    /// From its first byte (port 465).
    Implicit,
    /// After STARTTLS, without which nothing is sent (port 587).
    StartTls,
    /// Not: on this machine only.
    None,
}

impl Setting for MailTls {
    const EXPECTED: &'static str = "implicit, starttls or none";
    fn read(text: &str) -> Option<Self> {
        match text.trim() {
            "implicit" => Some(MailTls::Implicit),
            "starttls" => Some(MailTls::StartTls),
            "none" => Some(MailTls::None),
            _ => None,
        }
    }
    fn show(&self) -> String {
        match self {
            MailTls::Implicit => "implicit",
            MailTls::StartTls => "starttls",
            MailTls::None => "none",
        }
        .to_owned()
    }
}

/// The section, where it is used.
#[derive(Clone, Debug)]
pub struct MailConfig {
    /// The server's name, or its address.
    pub server: String,
    /// Its port.
    pub port: u16,
    /// How the connection is protected.
    pub tls: MailTls,
    /// Roots to trust instead of the system's, in PEM.
    pub roots_file: Option<PathBuf>,
    /// User and password.
    pub credentials: Option<(String, Secret)>,
    /// The sender's address.
    pub from: String,
    /// The sender's name.
    pub from_name: Option<String>,
    /// Operators who get alerts of the platform.
    pub operators: Vec<String>,
    /// Kinds of alerts that they get no mail of.
    pub unwanted: Vec<String>,
    /// Between two messages to one address at least.
    pub every: Duration,
}

impl MailConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Option<Self> {
        let server: Option<String> =
            r.optional("mail.server", "Name of the SMTP server that takes mail; without it none is sent.");
        let tls = r.value("mail.tls", MailTls::Implicit, "How the connection is protected: `implicit` (TLS from its first byte), `starttls`, or `none`, on this machine only.");
        let usual = if tls == MailTls::StartTls { 587 } else { 465 };
        let port: Option<u16> = r.optional("mail.port", "Its port; 465, with `starttls` 587, where nothing is said.");
        let roots_file =
            r.optional("mail.roots_file", "PEM file of the root to trust for it; without it the system's are trusted.");
        let user: Option<String> = r.optional("mail.user", "User name there.");
        let password = r.secret("mail.password", "Password there.", "File that holds `mail.password`.");
        let from: Option<String> = r.optional("mail.from", "Address that mail comes from; needed with `mail.server`.");
        let from_name: Option<String> = r.optional("mail.from_name", "Name that mail comes from.");
        let operators: Vec<String> =
            r.value("mail.operators", vec![], "Addresses of operators, who get the alerts of the whole platform.");
        let unwanted: Vec<String> = r.value(
            "mail.unwanted",
            vec![],
            "Kinds of alerts that operators get no mail of, as `names_left_behind`; other channels tell of them.",
        );
        for kind in unwanted.iter().filter(|kind| of_operators().all(|known| known != kind.as_str())) {
            let known = of_operators().collect::<Vec<_>>().join(", ");
            r.problem("mail.unwanted", "", format!("{kind:?} is no kind of alert that operators get; those are {known}"));
        }
        let every = r.value(
            "mail.every",
            Duration::from_secs(600),
            "Between two messages to one address at least; what comes meanwhile makes one.",
        );
        let server = server?;
        let read = |r: &mut Reader<'_>, key: &str, text: &str| {
            email(text).map_err(|e| r.problem(key, "", format!("{text:?} is no address: {e}"))).ok()
        };
        let operators = operators.iter().filter_map(|text| read(r, "mail.operators", text)).collect();
        let Some(from) = from else {
            r.problem("mail.from", "", "is missing: mail needs a sender, as mail.server is set".into());
            return None;
        };
        let from = read(r, "mail.from", &from)?;
        let credentials = match (user, password) {
            (Some(user), Some(password)) => Some((user, password)),
            (None, None) => None,
            _ => {
                r.problem("mail.user", "", "user and password go together: give both or none".into());
                None
            }
        };
        let here = server == "localhost" || server.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if tls == MailTls::None && !here {
            r.problem("mail.tls", "", format!("is none, and {server} is not this machine; use implicit or starttls"));
        }
        let port = port.unwrap_or(usual);
        Some(MailConfig { server, port, tls, roots_file, credentials, from, from_name, operators, unwanted, every })
    }
}
