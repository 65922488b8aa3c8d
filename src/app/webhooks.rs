//! The places that events are sent to: added with a secret that is shown once, tried, replaced, switched on again, removed.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::json;

use super::{App, AppError};
use crate::mint;
use crate::model::alert::kinds::{self, KindsError, WEBHOOK_TEST};
use crate::model::hook_url::{HookRules, HookUrl, HookUrlError};
use crate::model::id::{EventId, TenantId, WebhookId};
use crate::model::moment::Moment;
use crate::model::outcome::NewEvent;
use crate::model::secret::Secret;
use crate::notify::webhook;
use crate::store::webhooks::{self, WebhookRow};
use crate::store::{StoreError, StoreResult, Tx, alerts, deliveries};
use crate::vault::{Context, Sealed};

/// How many places a tenant may have, and how many the platform.
pub const MOST: i64 = 20;
/// How long a replaced secret is good beside the new one.
pub const BOTH: Duration = Duration::from_secs(24 * 3600);

/// Why a place was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddWebhookError {
    /// Its URL.
    #[error(transparent)]
    Url(#[from] HookUrlError),
    /// What it asks for.
    #[error(transparent)]
    Kinds(#[from] KindsError),
    /// There are as many as there may be.
    #[error("there are {MOST} webhooks, which is the most; remove one first")]
    TooMany,
    /// Not the caller's fault.
    #[error(transparent)]
    App(#[from] AppError),
}

impl From<StoreError> for AddWebhookError {
    fn from(e: StoreError) -> Self {
        AddWebhookError::App(e.into())
    }
}

fn context(id: &WebhookId) -> Context {
    Context::new("webhook-secret", id.as_str())
}

fn url_context(id: &WebhookId) -> Context {
    Context::new("webhook-url", id.as_str())
}

fn seal(app: &App, context: &Context, secret: &Secret) -> Result<Vec<u8>, AppError> {
    Ok(app.vault.seal(&app.env, context, secret)?.as_bytes().to_vec())
}

/// What others than its owner see of a URL, whose path and query may be as good as a password: the host, and by what two URLs are
/// told apart.
fn shown(url: &str) -> (String, String) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let digest = digest(&SHA256, url.as_bytes());
    let short = digest.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    (host, short)
}

/// The whole URL of a place.
pub fn url(app: &App, row: &WebhookRow) -> Result<Secret, AppError> {
    match &row.sealed_url {
        Some(sealed) => Ok(app.vault.open(&url_context(&row.id), &Sealed::try_from(sealed.clone())?)?),
        None => Ok(Secret::from(row.url.clone())),
    }
}

/// Seals the URLs that an older release wrote in the open; how many.
pub async fn seal_urls(app: &App) -> Result<usize, AppError> {
    let mut sum = 0;
    loop {
        let open = webhooks::in_the_open(&app.store, 200).await?;
        if open.is_empty() {
            return Ok(sum);
        }
        sum += open.len();
        for (id, url) in open {
            let (host, fingerprint) = shown(&url);
            let sealed = seal(app, &url_context(&id), &Secret::from(url))?;
            app.store.execute(webhooks::seal(&id, &sealed, &host, &fingerprint)).await?;
        }
    }
}

/// The secrets of a place that are good now, the newest first.
pub(super) fn secrets(app: &App, row: &WebhookRow, now: Moment) -> Result<Vec<Secret>, AppError> {
    let previous = row.previous_secret.iter().filter(|_| row.previous_until.is_some_and(|until| now < until));
    let open = |sealed: &Vec<u8>| Ok(app.vault.open(&context(&row.id), &Sealed::try_from(sealed.clone())?)?);
    std::iter::once(&row.secret).chain(previous).map(open).collect()
}

async fn told(
    tx: &mut Tx,
    app: &App,
    tenant: Option<&TenantId>,
    kind: &'static str,
    id: &WebhookId,
    actor: &str,
) -> StoreResult<()> {
    let event = NewEvent { kind, actor: actor.to_owned(), cause: "asked for".to_owned(), detail: json!({ "webhook": id }) };
    tx.execute(alerts::event(&mint!(app.env, EventId), tenant, &event, app.env.now())).await?;
    let bell = std::sync::Arc::clone(&app.bells.relay);
    tx.after_commit(move || bell.notify_one());
    Ok(())
}

/// A place to add. Its URL is not printed.
pub struct NewWebhook<'a> {
    /// Whose: a tenant's, or the platform's, which is told of everything.
    pub tenant: Option<TenantId>,
    /// Where.
    pub url: &'a str,
    /// Of what.
    pub kinds: &'a [String],
}

/// Adds a place, inside a transaction; the secret exists here only.
pub async fn add_in(
    tx: &mut Tx,
    app: &App,
    rules: &HookRules,
    new: NewWebhook<'_>,
    actor: &str,
) -> Result<(WebhookRow, Secret), AddWebhookError> {
    HookUrl::read(new.url, rules)?;
    let kinds = kinds::subscribed(new.kinds, new.tenant.is_none())?;
    let (id, secret) = (mint!(app.env, WebhookId), webhook::new_secret(&app.env));
    let (host, fingerprint) = shown(new.url);
    let row = WebhookRow {
        secret: seal(app, &context(&id), &secret)?,
        sealed_url: Some(seal(app, &url_context(&id), &Secret::from(new.url.to_owned()))?),
        id,
        tenant_id: new.tenant,
        url: String::new(),
        host,
        fingerprint,
        kinds,
        previous_secret: None,
        previous_until: None,
        not_before: Moment::default(),
        failures: 0,
        failing_since: None,
        fault: None,
        disabled_at: None,
        disabled_why: None,
        created_at: app.env.now(),
        pending: 0,
    };
    if tx.execute(webhooks::insert(&row, MOST)).await? == 0 {
        return Err(AddWebhookError::TooMany);
    }
    told(tx, app, row.tenant_id.as_ref(), "webhook_added", &row.id, actor).await?;
    Ok((row, secret))
}

/// Removes a place and what waits for it.
pub async fn remove(app: &App, row: &WebhookRow, actor: &str) -> Result<bool, AppError> {
    let mut tx = app.store.begin().await?;
    if !webhooks::delete(&mut tx, &row.id).await? {
        return Ok(false);
    }
    told(&mut tx, app, row.tenant_id.as_ref(), "webhook_removed", &row.id, actor).await?;
    tx.commit().await?;
    Ok(true)
}

/// Gives a place another secret. For a day requests are signed with both.
pub async fn rotate_in(tx: &mut Tx, app: &App, row: &WebhookRow, actor: &str) -> Result<(Secret, Moment), AppError> {
    let (secret, until) = (webhook::new_secret(&app.env), app.env.now() + BOTH);
    tx.execute(webhooks::rotate(&row.id, &seal(app, &context(&row.id), &secret)?, until)).await?;
    told(tx, app, row.tenant_id.as_ref(), "webhook_secret_rotated", &row.id, actor).await?;
    Ok((secret, until))
}

/// Switches a place on again; whether it was off.
pub async fn enable(app: &App, row: &WebhookRow, actor: &str) -> Result<bool, AppError> {
    let mut tx = app.store.begin().await?;
    if !webhooks::enable(&mut tx, &row.id, app.env.now()).await? {
        return Ok(false);
    }
    told(&mut tx, app, row.tenant_id.as_ref(), "webhook_enabled", &row.id, actor).await?;
    tx.commit().await?;
    Ok(true)
}

/// Sends a try to one place; by which event it is found.
pub async fn test(app: &App, row: &WebhookRow, actor: &str) -> Result<EventId, AppError> {
    let (event, now) = (mint!(app.env, EventId), app.env.now());
    let news = NewEvent {
        kind: WEBHOOK_TEST,
        actor: actor.to_owned(),
        cause: "a try, asked for".to_owned(),
        detail: json!({ "webhook": row.id }),
    };
    let mut tx = app.store.begin().await?;
    tx.execute(alerts::event(&event, row.tenant_id.as_ref(), &news, now)).await?;
    tx.execute(deliveries::insert_test(&row.id, &event, now)).await?;
    tx.commit().await?;
    app.bells.relay.notify_one();
    Ok(event)
}
