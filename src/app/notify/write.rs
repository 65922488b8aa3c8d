//! Mail: all that waits for an address makes one message; after it the address is left alone for a while.

use std::sync::Arc;
use std::time::Duration;

use super::Notifier;
use crate::app::AppError;
use crate::model::moment::Moment;
use crate::model::retries;
use crate::notify::mail::{MailError, Mailer};
use crate::notify::message::{self, Item};
use crate::store::alerts::{self, Tells};
use crate::store::mail_items::{self, Addressee, ItemRow};
use crate::telemetry::Chain;

/// Addresses written to in one round.
const AT_ONCE: i64 = 20;
/// How long a message is nobody else's: more than it can take.
const LEASE: Duration = Duration::from_secs(120);
/// What is kept of an error.
const SAID: usize = 200;

/// How a message ended.
enum Written {
    Nothing,
    Sent,
    NotTaken,
    /// No other would be taken now either.
    ServerAway,
}

impl Notifier {
    /// Writes to everybody who has something due.
    pub(super) async fn write_all(&self) -> Result<usize, AppError> {
        let Some(mailer) = self.mailer.clone() else { return Ok(0) };
        let mut sent = 0;
        for to in mail_items::addressees(&self.app.store, self.app.env.now(), AT_ONCE).await? {
            match self.write(&mailer, &to).await? {
                Written::Sent => sent += 1,
                Written::ServerAway => break,
                Written::Nothing | Written::NotTaken => {}
            }
        }
        Ok(sent)
    }

    async fn write(&self, mailer: &Arc<dyn Mailer>, to: &Addressee) -> Result<Written, AppError> {
        let (app, now) = (&self.app, self.app.env.now());
        let until = now + LEASE;
        let mut tx = app.store.begin().await?;
        if let Some(last) = mail_items::last_sent(&mut tx, to).await?
            && now < last + self.settings.mail_every
        {
            tx.execute(mail_items::rest(to, last + self.settings.mail_every)).await?;
            tx.commit().await?;
            return Ok(Written::Nothing);
        }
        let taken = mail_items::take(&mut tx, to, now, until).await?;
        if taken.is_empty() {
            return Ok(Written::Nothing);
        }
        if !mail_items::still_wanted(&mut tx, to).await? {
            tx.execute(mail_items::all_ended(to, until, "dropped", Some("nobody wants it any more"), now)).await?;
            tx.commit().await?;
            return Ok(Written::Nothing);
        }
        let mut told = Vec::new();
        for item in taken {
            // An alert that is over by now is not told, nor is the end of one that was not.
            let late = alerts::told_by(&mut tx, &item.event_id).await? == Tells::Over
                || mail_items::beginning_was_not_sent(&mut tx, to, &item.event_id).await?;
            if late {
                tx.execute(mail_items::ended(to, &item.event_id, "dropped", None, now)).await?;
            } else {
                told.push(item);
            }
        }
        tx.commit().await?;
        let Some(first) = told.first() else { return Ok(Written::Nothing) };
        app.boundary.cross("mail taken").await;
        let (id, attempts) = (first.event_id.to_string(), told.iter().map(|i| i.attempts).max().unwrap_or(1));
        let items: Vec<Item> = told.into_iter().map(worded).collect();
        let link = self.link(to);
        let message = message::compose(&to.address, &self.settings.brand, id, now, &items, link.as_deref(), self.why(to));
        let answer = mailer.send(&message).await;
        app.boundary.cross("mail sent").await;
        self.written(to, until, attempts, answer, app.env.now()).await
    }

    async fn written(
        &self,
        to: &Addressee,
        until: Moment,
        attempts: i64,
        answer: Result<(), MailError>,
        now: Moment,
    ) -> Result<Written, AppError> {
        let app = &self.app;
        let error = match answer {
            Ok(()) => {
                app.store.execute(mail_items::all_ended(to, until, "sent", None, now)).await?;
                app.meters.delivered("mail", "delivered");
                return Ok(Written::Sent);
            }
            Err(error) => error,
        };
        let said: String = Chain(&error).to_string().chars().take(SAID).collect();
        let refused = matches!(error, MailError::Refused(_) | MailError::Unusable(_));
        let next = retries::next_try(attempts, None, now).filter(|_| !refused);
        let stmt = match next {
            Some(at) => mail_items::all_again(to, until, at, &said),
            None => mail_items::all_ended(to, until, "given_up", Some(&said), now),
        };
        app.store.execute(stmt).await?;
        app.meters.delivered("mail", "failed");
        tracing::warn!(error = %Chain(&error), again = next.map(|at| at.rfc3339()), "a message was not taken");
        Ok(if matches!(error, MailError::Unreachable(_)) { Written::ServerAway } else { Written::NotTaken })
    }

    fn link(&self, to: &Addressee) -> Option<String> {
        let url = self.settings.public_url.as_deref()?.trim_end_matches('/');
        Some(if to.whose.is_empty() { format!("{url}/operator/alerts") } else { format!("{url}/domains") })
    }

    fn why(&self, to: &Addressee) -> &'static str {
        if to.whose.is_empty() {
            "You get this because your address is among mail.operators."
        } else {
            "You get this because your address is a contact for these domains. Whoever manages them can choose what is sent to you, or remove you."
        }
    }
}

fn worded(item: ItemRow) -> Item {
    Item { hostname: item.hostname, said: item.cause, at: item.at }
}
