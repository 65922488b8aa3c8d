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

/// How long a server may take for one message.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why a message was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// The server could not be reached, hung up, or is not who it should be: others would fare no better now.
    #[error("the mail server could not be used: {0}")]
    Unreachable(String),
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
            () = self.env.sleep(2 * PATIENCE) => return Err(MailError::Unreachable("it did not answer in time".to_owned())),
        };
        sent.map(|_| ()).map_err(|e| {
            let said = Chain(&e).to_string();
            match () {
                () if e.is_permanent() => MailError::Refused(said),
                () if e.is_transient() => MailError::Deferred(said),
                () => MailError::Unreachable(said),
            }
        })
    }
}

/// One for many.
#[async_trait]
impl<M: Mailer> Mailer for Arc<M> {
    async fn send(&self, message: &Message) -> Result<(), MailError> {
        (**self).send(message).await
    }
}
