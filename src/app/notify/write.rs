//! Mail: all that waits for an address makes one message, whosever contact it is; after it the address is left alone for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_lc_rs::digest::{Context as Digest, SHA256};
use futures::stream::{self, StreamExt as _};

use super::Notifier;
use super::together;
use crate::app::AppError;
use crate::model::alert::telling::{Listener, Says, worth_telling};
use crate::model::moment::Moment;
use crate::model::retries;
use crate::notify::mail::{MailError, Mailer};
use crate::notify::message;
use crate::store::mail_items::{self, ItemRow};
use crate::store::telling::{self, Telling};
use crate::store::{StoreResult, Tx};
use crate::telemetry::Chain;

/// Addresses read at once.
const PAGE: i64 = 8;
/// Messages handed over at the same time.
const WRITERS: usize = 4;
/// How long a message is nobody else's: more than it can take.
const LEASE: Duration = Duration::from_secs(180);
/// So many items are judged, or settled, in one transaction: whoever else writes goes in between.
const AT_ONCE: usize = 200;
/// What is kept of an error.
const SAID: usize = 200;

/// How a message ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Nothing,
    Sent,
    NotTaken,
    /// No other would be taken now either.
    ServerAway,
}

/// What is told by a message that is on its way.
struct Told {
    item: ItemRow,
    telling: Telling,
    /// This message is the first by which the address may hear of the topic.
    first_word: bool,
}

impl Notifier {
    /// Writes to everybody who has something due, several at once; how many messages were taken. What goes wrong with one address is
    /// its own.
    pub async fn write_round(&self) -> Result<usize, AppError> {
        let Some(mailer) = self.mailer.clone() else { return Ok(0) };
        let (mut sent, mut after, away) = (0, String::new(), AtomicBool::new(false));
        while !away.load(Ordering::Relaxed) {
            let page = mail_items::addressees(&self.app.store, self.app.env.now(), &after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after.clone_from(last);
            let write = |to: String| {
                let (mailer, away) = (&mailer, &away);
                async move {
                    // Others would fare no better now.
                    if away.load(Ordering::Relaxed) {
                        return Ok(Written::Nothing);
                    }
                    let written = self.write(mailer, &to).await;
                    if matches!(written, Ok(Written::ServerAway)) {
                        away.store(true, Ordering::Relaxed);
                    }
                    written
                }
            };
            let mut writing = stream::iter(page).map(write).buffer_unordered(WRITERS);
            while let Some(written) = writing.next().await {
                match written {
                    Ok(end) => sent += usize::from(end == Written::Sent),
                    Err(error) => tracing::warn!(error = %Chain(&error), "a message could not be written; trying again"),
                }
            }
        }
        Ok(sent)
    }

    async fn write(&self, mailer: &Arc<dyn Mailer>, to: &str) -> Result<Written, AppError> {
        let (app, now) = (&self.app, self.app.env.now());
        let until = now + LEASE;
        let mut tx = app.store.begin().await?;
        // A last message from the future is one of before a clock jumped back.
        if let Some(last) = mail_items::last_sent(&mut tx, to).await?
            && (last..last + self.settings.mail_every).contains(&now)
        {
            tx.execute(mail_items::rest(to, last + self.settings.mail_every)).await?;
            tx.commit().await?;
            return Ok(Written::Nothing);
        }
        let items = mail_items::take(&mut tx, to, now, until).await?;
        tx.commit().await?;
        let (mut told, mut items) = (Vec::new(), items.into_iter().peekable());
        while items.peek().is_some() {
            let mut tx = app.store.begin().await?;
            for item in items.by_ref().take(AT_ONCE) {
                let operator = item.whose.is_empty() && self.settings.operators.iter().any(|own| own == to);
                if !operator && !item.is_contact {
                    tx.execute(mail_items::ended(to, &item, "dropped", Some("nobody wants it any more"), now)).await?;
                    continue;
                }
                match self.judged(&mut tx, to, item, now).await? {
                    Ok(one) => told.push(one),
                    Err(late) => drop(tx.execute(mail_items::ended(to, &late, "dropped", None, now)).await?),
                }
            }
            tx.commit().await?;
            app.boundary.cross("mail judged").await;
        }
        if told.is_empty() {
            return Ok(Written::Nothing);
        }
        app.boundary.cross("mail taken").await;
        let reader = Reader::of(&told);
        let (items, link) = (together::lines(told.iter().map(|one| &one.item)), self.link(reader));
        let id = name_of(to, &told);
        let message = message::compose(to, &self.settings.brand, id, now, &items, link.as_deref(), reader.why());
        let answer = mailer.send(&message).await;
        app.boundary.cross("mail sent").await;
        self.written(to, until, &told, answer, app.env.now()).await
    }

    /// Whether an item is still worth writing: an alert that is over by now is not told, nor is the end of one that was not.
    async fn judged(&self, tx: &mut Tx, to: &str, item: ItemRow, now: Moment) -> StoreResult<Result<Told, ItemRow>> {
        let telling = telling::of(tx, &item.event_id, &item.kind).await?;
        let told = matches!(telling.says, Says::Ends { .. }) && telling::is_told(tx, to, &telling.topic).await?;
        // Whoever gets ends by mail gets beginnings.
        if !worth_telling(telling.says, Listener { told, hears_beginnings: true }) {
            return Ok(Err(item));
        }
        let first_word = matches!(telling.says, Says::Begins { .. })
            && tx.execute(telling::about_to(to, &telling.topic, &item.event_id, now)).await? == 1;
        Ok(Ok(Told { item, telling, first_word }))
    }

    async fn written(
        &self,
        to: &str,
        until: Moment,
        told: &[Told],
        answer: Result<(), MailError>,
        now: Moment,
    ) -> Result<Written, AppError> {
        let app = &self.app;
        let error = match answer {
            Ok(()) => return self.sent(to, until, told, now).await,
            Err(error) => error,
        };
        let mut tx = app.store.begin().await?;
        let said: String = Chain(&error).to_string().chars().take(SAID).collect();
        let of = |count: fn(&ItemRow) -> i64| told.iter().map(|one| count(&one.item)).max().unwrap_or(0);
        let (tries, refusals) = (of(|item| item.attempts), of(|item| item.refusals));
        let again = match error {
            MailError::Refused(_) | MailError::Unusable(_) => None,
            MailError::Deferred(_) => retries::next_try(refusals + 1, None, now),
            // The server's trouble, or ours, is not the addressee's: nothing is given up for it.
            MailError::Unreachable(_) | MailError::Broken(_) => Some(now + retries::pause_for_server(tries)),
        };
        match again {
            Some(at) => {
                let put_off = matches!(error, MailError::Deferred(_));
                tx.execute(mail_items::all_again(to, until, put_off, at, &said)).await?;
            }
            None if matches!(error, MailError::Deferred(_)) => {
                tx.execute(mail_items::given_up(to, until, refusals, &said, now)).await?;
                // What joined later has tries left.
                let at = now + retries::pause_for_server(retries::REFUSALS);
                tx.execute(mail_items::all_again(to, until, true, at, &said)).await?;
            }
            None => drop(tx.execute(mail_items::all_ended(to, until, "given_up", Some(&said), now)).await?),
        }
        if !matches!(error, MailError::Broken(_)) {
            for Told { item, telling, .. } in told.iter().filter(|one| one.first_word) {
                tx.execute(telling::was_not(to, &telling.topic, &item.event_id)).await?;
            }
        }
        tx.commit().await?;
        app.meters.delivered("mail", "failed");
        tracing::warn!(error = %Chain(&error), again = again.map(|at| at.rfc3339()), "a message was not taken");
        let away = matches!(error, MailError::Unreachable(_) | MailError::Broken(_));
        Ok(if away { Written::ServerAway } else { Written::NotTaken })
    }

    /// It was taken. What is written of topics after that is known from before the message too: whoever dies here leaves nothing
    /// that is told twice.
    async fn sent(&self, to: &str, until: Moment, told: &[Told], now: Moment) -> Result<Written, AppError> {
        let mut tx = self.app.store.begin().await?;
        tx.execute(mail_items::all_ended(to, until, "sent", None, now)).await?;
        for (n, Told { item, telling, .. }) in told.iter().enumerate() {
            if n > 0 && n % AT_ONCE == 0 {
                tx.commit().await?;
                tx = self.app.store.begin().await?;
            }
            match telling.says {
                Says::Begins { .. } => {
                    tx.execute(telling::told(to, &telling.topic, &item.event_id, now)).await?;
                }
                Says::Ends { .. } => {
                    tx.execute(telling::over(to, &telling.topic)).await?;
                }
                Says::Else | Says::Forgotten => {}
            }
        }
        tx.commit().await?;
        self.app.meters.delivered("mail", "delivered");
        Ok(Written::Sent)
    }

    fn link(&self, reader: Reader) -> Option<String> {
        let url = self.settings.public_url.as_deref()?.trim_end_matches('/');
        let page = match reader {
            Reader::Operator => "/operator/alerts",
            Reader::Contact => "/domains",
            // Nobody signs in there any more.
            Reader::Former => return None,
        };
        Some(format!("{url}{page}"))
    }
}

/// To whom a message is, by all that it tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Operator,
    Contact,
    /// A contact of tenants that left, and of no other.
    Former,
}

impl Reader {
    fn of(told: &[Told]) -> Reader {
        if told.iter().all(|one| one.item.whose.is_empty()) {
            Reader::Operator
        } else if told.iter().all(|one| one.item.left) {
            Reader::Former
        } else {
            Reader::Contact
        }
    }

    fn why(self) -> &'static str {
        match self {
            Reader::Operator => "You get this because your address is among mail.operators.",
            Reader::Contact => {
                "You get this because your address is a contact for these domains. Whoever manages them can choose what is sent to you, or remove you."
            }
            Reader::Former => {
                "You get this because your address was a contact for these domains when their account ended. It ends when their records lead here no more."
            }
        }
    }
}

/// The message's name: the same for the same things to the same address, so that one that came twice is known, and another one for
/// anything else.
fn name_of(to: &str, told: &[Told]) -> String {
    let mut digest = Digest::new(&SHA256);
    digest.update(to.as_bytes());
    for one in told {
        digest.update(b"\n");
        digest.update(one.item.event_id.as_str().as_bytes());
    }
    digest.finish().as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
