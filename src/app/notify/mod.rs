//! Telling: what the log says is handed out to places and addresses, and sent, in order and until it arrived.
//!
//! - [`Notifier`] holds what is needed beside the application: who posts, who mails, and what the operator decided.
//! - `deliver` hands out the stream by a cursor and keeps tries under way, as many as `pace` has room for; `send` is one of them;
//!   `write` sends what is due by mail, in a loop of its own, in lines that
//!   `together` words. None of them waits for another's slow receiver.
//! - `payload` is the document that a webhook gets; `words` says what is told of a try that failed.
//!
//! What always holds: an event is handed out once to each place (a primary key), in the transaction that moves the cursor; it is
//! looked at again right before it is sent, against what is open now and what the place was told last
//! ([`crate::model::alert::telling`]); what goes wrong with one delivery is its own; a try is taken by a guard and its outcome
//! written under the number of the try. A process that dies between sending and writing sends once more, under the same id. May
//! import what `app` may. To fake it: hand it a [`crate::reach::hook::Hooks`] and a [`crate::notify::mail::Mailer`] of your own.
//! How to get it wrong: remember anything in memory that a restart should know.

mod deliver;
mod pace;
mod payload;
mod send;
mod together;
mod words;
mod write;

use std::sync::Arc;
use std::time::Duration;

use super::App;
use crate::model::hook_url::HookRules;
use crate::notify::mail::Mailer;
use crate::reach::hook::Hooks;

/// What the operator decided.
#[derive(Clone, Debug)]
pub struct NotifySettings {
    /// Which URLs are asked.
    pub rules: HookRules,
    /// A place that took nothing for so long is switched off.
    pub disable_after: Duration,
    /// One that did not answer at all for so long is, too.
    pub disable_silent_after: Duration,
    /// Operators' addresses.
    pub operators: Vec<String>,
    /// Kinds of alerts that no operator gets mail of.
    pub unwanted: Vec<String>,
    /// Between two messages to one address at least.
    pub mail_every: Duration,
    /// What messages call the platform.
    pub brand: String,
    /// Where the pages are, for links in messages.
    pub public_url: Option<String>,
}

impl Default for NotifySettings {
    fn default() -> Self {
        NotifySettings {
            rules: HookRules::default(),
            disable_after: Duration::from_secs(5 * 86_400),
            disable_silent_after: Duration::from_secs(15 * 86_400),
            operators: Vec::new(),
            unwanted: Vec::new(),
            mail_every: Duration::from_secs(600),
            brand: "Nameplate".to_owned(),
            public_url: None,
        }
    }
}

/// Sends what is to be told; cheap to clone.
#[derive(Clone)]
pub struct Notifier {
    app: App,
    hooks: Arc<dyn Hooks>,
    mailer: Option<Arc<dyn Mailer>>,
    settings: Arc<NotifySettings>,
}

impl Notifier {
    /// Without a mailer nothing is written to anybody.
    pub fn new(app: App, hooks: Arc<dyn Hooks>, mailer: Option<Arc<dyn Mailer>>, settings: NotifySettings) -> Self {
        Notifier { app, hooks, mailer, settings: Arc::new(settings) }
    }
}
