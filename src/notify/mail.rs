//! Handing messages to an SMTP server. What becomes of one that is not taken is in the rows, not here.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, MultiPartBuilder, SinglePart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};

use super::message::Message;
use crate::config::{MailConfig, MailTls};
use crate::env::Env;
use crate::telemetry::Chain;

/// How long one address of a server may take to be connected to, before the next one is tried; and a server for each answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long all of a message may take: several addresses that are silent, or an answer that comes drop by drop.
const IN_ALL: Duration = Duration::from_secs(100);

/// Why a message was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// The server could not be reached, or is not who it should be: others would fare no better now.
    #[error("the mail server could not be used: {0}")]
    Unreachable(String),
    /// It was lost in the middle: it may have taken the message all the same.
    #[error("the mail server broke off: {0}")]
    Broken(String),
    /// It wants to be asked again.
    #[error("the mail server put it off: {0}")]
    Deferred(String),
    /// It will not take it, now or later.
    #[error("the mail server refused it: {0}")]
    Refused(String),
    /// The settings, or the message, cannot be used.
    #[error("the message could not be made: {0}")]
    Unusable(String),
}

/// Takes messages.
#[async_trait]
pub trait Mailer: Send + Sync + 'static {
    /// Hands a message on; once this returns well, whoever took it is answerable for it.
    async fn send(&self, message: &Message) -> Result<(), MailError>;
}

/// Hands messages to an SMTP server.
pub struct Smtp {
    env: Env,
    from: Mailbox,
    domain: String,
    transport: AsyncSmtpTransport<Tokio1Executor>,
}

fn unusable(e: impl std::error::Error + 'static) -> MailError {
    MailError::Unusable(Chain(&e).to_string())
}

fn address(text: &str) -> Result<Address, MailError> {
    text.parse().map_err(unusable)
}

impl Smtp {
    /// As configured. `roots`, in PEM, are trusted instead of the system's.
    pub fn new(env: &Env, config: &MailConfig, roots: Option<&[u8]>) -> Result<Self, MailError> {
        let parameters = || -> Result<TlsParameters, MailError> {
            let mut builder = TlsParameters::builder(config.server.clone());
            if let Some(pem) = roots {
                builder = builder.certificate_store(CertificateStore::None);
                for root in Certificate::from_pem(pem).map(|root| [root]).map_err(unusable)? {
                    builder = builder.add_root_certificate(root);
                }
            }
            builder.build_rustls().map_err(unusable)
        };
        let tls = match config.tls {
            MailTls::Implicit => Tls::Wrapper(parameters()?),
            MailTls::StartTls => Tls::Required(parameters()?),
            MailTls::None => Tls::None,
        };
        let from = address(&config.from)?;
        let domain = from.domain().to_owned();
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(config.server.as_str())
            .port(config.port)
            .tls(tls)
            .hello_name(ClientId::Domain(domain.clone()))
            .timeout(Some(PATIENCE));
        if let Some((user, password)) = &config.credentials {
            let password = password.expose_str().unwrap_or_default().to_owned();
            builder = builder.credentials(Credentials::new(user.clone(), password));
        }
        let from = Mailbox::new(config.from_name.clone(), from);
        Ok(Smtp { env: env.clone(), from, domain, transport: builder.build() })
    }

    fn written(&self, message: &Message) -> Result<lettre::Message, MailError> {
        let since = Duration::from_secs(u64::try_from(message.at.secs()).unwrap_or(0));
        // A boundary that no line of ours can be: drawn, like every other.
        let alternative: MultiPartBuilder = MultiPart::alternative().boundary(format!("=_{}", self.env.draw_hex(16)));
        let parts = alternative
            .singlepart(SinglePart::plain(message.text.clone()))
            .singlepart(SinglePart::html(message.html.clone()));
        let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
        lettre::Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, address(&message.to)?))
            .date(SystemTime::UNIX_EPOCH + since)
            .message_id(Some(format!("<{}@{}>", message.id, self.domain)))
            .subject(message.subject.clone())
            .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()))
            .multipart(parts)
            .map_err(unusable)
    }
}

#[async_trait]
impl Mailer for Smtp {
    async fn send(&self, message: &Message) -> Result<(), MailError> {
        let written = self.written(message)?;
        let sent = tokio::select! {
            biased;
            sent = self.transport.send(written) => sent,
            () = self.env.sleep(IN_ALL) => return Err(MailError::Broken("it did not answer in time".to_owned())),
        };
        sent.map(|_| ()).map_err(|e| failed(&e))
    }
}

/// What an error means. The library names the stage in its words alone.
fn failed(e: &lettre::transport::smtp::Error) -> MailError {
    let said = Chain(e).to_string();
    match e.status().map(u16::from) {
        Some(code) => answered(code, said),
        None if e.is_tls() || e.is_client() || e.to_string().starts_with("Connection error") => MailError::Unreachable(said),
        None => MailError::Broken(said),
    }
}

/// What an SMTP answer means for the message (RFC 5321 §4.2.3, RFC 4954 §6). Only what is said of the addressee is final; who does
/// not know us, or takes nothing from us now, is asked again, since that is ours to mend and every message would meet it.
fn answered(code: u16, said: String) -> MailError {
    match code {
        550..=553 | 556 => MailError::Refused(said),
        421 | 432 | 454 | 521 | 530 | 534 | 535 | 538 => MailError::Unreachable(said),
        _ => MailError::Deferred(said),
    }
}

/// One for many.
#[async_trait]
impl<M: Mailer> Mailer for Arc<M> {
    async fn send(&self, message: &Message) -> Result<(), MailError> {
        (**self).send(message).await
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_is_said_of_the_addressee_is_final() {
        let meant = |code| match answered(code, String::new()) {
            MailError::Refused(_) => "refused",
            MailError::Deferred(_) => "deferred",
            MailError::Unreachable(_) => "away",
            MailError::Broken(_) => "broken",
            MailError::Unusable(_) => "unusable",
        };
        assert_eq!([550, 551, 552, 553, 556].map(meant), ["refused"; 5]);
        assert_eq!([421, 454, 521, 530, 534, 535, 538].map(meant), ["away"; 7], "every message would meet it");
        assert_eq!([450, 451, 452, 500, 503, 554, 555].map(meant), ["deferred"; 7]);
    }

    proptest! {
        #[test]
        fn no_answer_is_final_but_a_permanent_one(code: u16, said in "\\PC{0,80}") {
            let refused = matches!(answered(code, said.clone()), MailError::Refused(kept) if kept == said);
            prop_assert_eq!(refused, matches!(code, 550..=553 | 556));
            prop_assert!(!matches!(answered(code, said), MailError::Unusable(_) | MailError::Broken(_)));
        }
    }
}
