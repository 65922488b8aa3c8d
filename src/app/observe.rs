//! Observations of a step: each looks at one thing and lets `model::conclude` say what it means.

use super::addresses::addresses_of;
use super::{App, AppError, ask, ca, choice, keys, preflight};
use crate::acme::chain::{self, ChainError};
use crate::acme::{AuthorizationStatus, Call, OrderStatus};
use crate::mint;
use crate::model::checks;
use crate::model::conclude::{self, AuthorizationSeen, CaStatus, Challenge, Conclusion, Former, Looked, Presence, Trouble};
use crate::model::domain::{PublicProbe, Situation};
use crate::model::evidence::{Check, Finding, Verdict};
use crate::model::id::CertificateId;
use crate::model::issuer::{IssuerNews, Oddity};
use crate::model::look::{Ask, Data, Kind, Observer, Seen};
use crate::model::order::Order;
use crate::model::outcome::{NewCertificate, Outcome};
use crate::model::plan::Observe;
use crate::model::preflight::Met;
use crate::model::reason::Reason;
use crate::store::{attempts, rollout};

pub(super) async fn observe(app: &App, s: &mut Situation, what: Observe) -> Result<Conclusion, AppError> {
    if what == Observe::Dns {
        return dns(app, s).await;
    }
    if what == Observe::Preflight {
        return preflight::observe(app, s).await;
    }
    if what == Observe::CertificateRollout {
        let certificate = s.domain.certificate_id.as_ref().map_or("", |c| c.as_str());
        let seen = match s.switch_at() {
            Some(_) => rolled_out(app, "certificate", certificate).await?,
            None => {
                let (name, now) = (s.domain.hostname.as_str(), app.env.now());
                rollout::served_now(&app.store, name, certificate, now, conclude::FRESH_EDGE).await?
            }
        };
        return Ok(conclude::certificate_rollout(s, &seen, app.settings.min_edges, app.env.now()));
    }
    if what == Observe::PublicName {
        let probe = public_name(app, s).await?;
        return Ok(conclude::public_name(s, probe, app.env.now()).into());
    }
    let Some(order) = s.order.clone() else { return Ok(Outcome::of(s, app.env.now()).into()) };
    match what {
        Observe::ChallengeRollout => {
            let seen = rolled_out(app, "challenge", order.challenge_id.as_ref().map_or("", |c| c.as_str())).await?;
            Ok(conclude::challenge_rollout(s, &order, &seen, app.settings.min_edges, app.env.now()))
        }
        Observe::Token => token(app, s, &order).await,
        Observe::Authorization => authorization(app, s, &order).await,
        Observe::Order => order_at_ca(app, s, &order).await,
        _ => issued_chain(app, s, &order).await,
    }
}

async fn dns(app: &App, s: &mut Situation) -> Result<Conclusion, AppError> {
    let superseded = attempts::superseded(&app.store, &s.domain.id, &s.domain.attempt_id).await?;
    let ask = question(app, s, superseded).await;
    // Who asks for a look while this one runs is owed another: what they published may not be in it.
    let began = app.env.now();
    let label = format!("{}.{}", ask::TXT_LABEL, s.domain.hostname);
    let seen = app.look.look(&ask).await;
    if let Some(wait) = seen.put_off {
        // Nothing was seen, so nothing changes but the time; whoever reads the page is told it.
        return Ok(Outcome::of(s, app.env.now() + wait).into());
    }
    let mut findings = checks::judge(&ask, &seen);
    preflight::behind_proxy(app, s, true, &mut findings).await?;
    choice::of_issuer(app, s, &ask, &seen, &mut findings).await?;
    if s.issuer.account_url.is_none() {
        // What the CA calls itself in CAA is not known before it answered us: nothing is allowed on that ground.
        findings.retain(|f| f.check != Check::Caa);
        findings.push(issuer_not_ready(s));
    }
    let cname_at_own_host = findings.iter().any(|f| f.check == Check::Routing && f.verdict() == Verdict::Pass)
        && seen.observations.iter().any(|o| o.answer.aliases(s.domain.hostname.as_str()).contains(&s.domain.target));
    let value = s.holding.as_ref().and_then(|h| h.value.as_deref());
    let former = Former { value: former_value(&label, value, &seen), cname_at_own_host };
    let looked = Looked { findings, former };
    Ok(conclude::look(s, &looked, began, &mut || app.env.id_bytes()).into())
}

/// What a look is to find out, with the addresses that our apex target has now.
pub(super) async fn question(app: &App, s: &Situation, superseded: Vec<String>) -> Ask {
    let mut ask = ask::everything(app, s, superseded, app.env.now());
    if let Some(target) = app.settings.apex_target.as_ref().filter(|_| s.domain.hostname.is_apex()) {
        ask.platform.addresses.extend(addresses_of(app, target).await);
    }
    ask
}

fn issuer_not_ready(s: &Situation) -> Finding {
    Finding {
        check: Check::Caa,
        reason: Reason::IssuerNotReady,
        expected: format!("an account at {}", s.issuer.name),
        observed: vec![format!("{} has not given us an account yet", s.issuer.name)],
        seen_by: Vec::new(),
        views: Vec::new(),
        advice: Reason::IssuerNotReady.sentence().to_owned(),
        found_at: None,
        found_via: None,
        record_to_publish: Vec::new(),
        dns_host: None,
    }
}

/// Whether the former holder's value is still at the label, by the word of the zone's own servers.
fn former_value(label: &str, value: Option<&str>, seen: &Seen) -> Presence {
    let Some(value) = value else { return Presence::Absent };
    let mut answers = seen
        .observations
        .iter()
        .filter(|o| {
            o.probe.name == label && o.probe.kind == Kind::Txt && matches!(o.probe.observer, Observer::Server { .. })
        })
        .peekable();
    if answers.peek().is_none() {
        return Presence::Unknown;
    }
    let mut all_definite = true;
    for o in answers {
        let here = o.answer.records.iter().any(|rr| match &rr.data {
            Data::Txt(strings) => checks::normalised(&checks::joined(strings)) == value,
            _ => false,
        });
        if here {
            return Presence::Present;
        }
        // A lame server's answer says nothing of the zone.
        all_definite &= o.answer.definite() && o.answer.authoritative;
    }
    if all_definite { Presence::Absent } else { Presence::Unknown }
}

async fn rolled_out(app: &App, kind: &str, subject: &str) -> Result<conclude::Rollout, AppError> {
    Ok(rollout::rollout_now(&app.store, kind, subject, app.env.now(), conclude::FRESH_EDGE).await?)
}

async fn public_name(app: &App, s: &Situation) -> Result<PublicProbe, AppError> {
    let serial = s.certificate.as_ref().map(|c| c.serial.clone()).unwrap_or_default();
    let answers = app.reach.served(&s.domain.hostname, &addresses_of(app, &s.domain.hostname).await).await;
    let mut ok = !answers.is_empty();
    let mut seen = Vec::with_capacity(answers.len());
    for answer in answers {
        seen.push(match answer.outcome {
            Ok(served) if served.serial == serial => {
                let status = served.status.map_or("no answer in HTTP".to_owned(), |status| format!("status {status}"));
                format!("{}: our certificate, {status}", answer.address)
            }
            Ok(served) => {
                ok = false;
                format!("{}: another certificate, serial {}", answer.address, served.serial)
            }
            Err(e) => {
                ok = false;
                format!("{}: {e}", answer.address)
            }
        });
    }
    Ok(PublicProbe { at: app.env.now(), ok, seen })
}

async fn token(app: &App, s: &Situation, order: &Order) -> Result<Conclusion, AppError> {
    let Some((token, expected)) = attempts::token_of(&app.store, order.challenge_id.as_ref()).await? else {
        return Ok(Outcome::of(s, app.env.now()).into());
    };
    let trails = preflight::trails(app, &s.domain.hostname, &token, &expected).await;
    let everywhere = !trails.is_empty() && trails.iter().all(|trail| trail.met == Met::Edge);
    Ok(conclude::token_fetched(s, order, everywhere, app.env.now()))
}

async fn authorization(app: &App, s: &Situation, order: &Order) -> Result<Conclusion, AppError> {
    let (authority, account) = ca::at_ca(app, s)?;
    let url = order.url.as_deref().unwrap_or_default();
    let read = ca::within(app, Call::Authorization, authority.authorizations(&account, url)).await;
    let now = app.env.now();
    let list = match read {
        Ok(list) => list,
        Err(e) => return Ok(conclude::trouble(s, order, None, &ca::trouble(app, &e), now).into()),
    };
    let Some(a) = list.into_iter().find(|a| a.name == s.domain.hostname) else {
        let seen = AuthorizationSeen { status: CaStatus::Invalid, http01: None, problem: None };
        return Ok(conclude::authorization(s, order, &seen, now, &mut || app.env.id_bytes()).into());
    };
    let status = match a.status {
        AuthorizationStatus::Pending => CaStatus::Pending,
        AuthorizationStatus::Valid => CaStatus::Valid,
        AuthorizationStatus::Invalid
        | AuthorizationStatus::Deactivated
        | AuthorizationStatus::Expired
        | AuthorizationStatus::Revoked => CaStatus::Invalid,
    };
    let seen = AuthorizationSeen {
        status,
        http01: a.http01.map(|c| Challenge { url: c.url, token: c.token, key_authorization: c.key_authorization }),
        problem: a.problem.map(|p| p.json().to_string()),
    };
    Ok(conclude::authorization(s, order, &seen, now, &mut || app.env.id_bytes()).into())
}

async fn order_at_ca(app: &App, s: &Situation, order: &Order) -> Result<Conclusion, AppError> {
    let (authority, account) = ca::at_ca(app, s)?;
    let url = order.url.as_deref().unwrap_or_default();
    let view = match ca::within(app, Call::Order, authority.order(&account, url)).await {
        Ok(view) => view,
        Err(e) => return Ok(conclude::trouble(s, order, None, &ca::trouble(app, &e), app.env.now()).into()),
    };
    let mut problem = view.problem.map(|p| p.json().to_string());
    if view.status == OrderStatus::Invalid && problem.is_none() {
        // The order does not say why; its authorization does. Failing to read it changes nothing but the words.
        if let Ok(list) = ca::within(app, Call::Authorization, authority.authorizations(&account, url)).await {
            problem = list.into_iter().find_map(|a| a.problem).map(|p| p.json().to_string());
        }
    }
    Ok(conclude::order_status(s, order, ca::status(view.status), problem.as_deref(), view.retry_after, app.env.now()))
}

async fn issued_chain(app: &App, s: &Situation, order: &Order) -> Result<Conclusion, AppError> {
    let (authority, account) = ca::at_ca(app, s)?;
    let url = order.url.as_deref().unwrap_or_default();
    let pem = match ca::within(app, Call::Certificate, authority.certificate(&account, url)).await {
        Ok(pem) => pem,
        Err(e) => return Ok(conclude::trouble(s, order, None, &ca::trouble(app, &e), app.env.now()).into()),
    };
    let key = keys::order_key(app, order)?;
    let now = app.env.now();
    let names = std::slice::from_ref(&s.domain.hostname);
    Ok(match chain::check(&pem, &key, names, now) {
        Ok(c) => {
            let certificate = NewCertificate {
                id: mint!(app.env, CertificateId),
                serial: c.serial,
                fingerprint: c.fingerprint,
                chain: pem,
                not_before: c.not_before,
                not_after: c.not_after,
                ari_id: c.ari_id,
            };
            let draw = u32::from_be_bytes(app.env.draw());
            conclude::chain(s, order, certificate, draw, now).into()
        }
        Err(e) => {
            let said = format!("the CA's chain was refused: {e}");
            let (mut verdict, mut news) = (conclude::CaVerdict::Missing, None);
            if let ChainError::NotValidNow { not_before, .. } = e {
                // One of the two clocks is wrong; another certificate would be as early, or as late.
                let early = not_before.since(now + chain::CLOCK_SLACK);
                verdict = conclude::CaVerdict::RetryAt((!early.is_zero()).then_some(early));
                news = Some(IssuerNews::Odd(Oddity::ClockDiffers, format!("for {}, {said}", s.domain.hostname)));
            }
            let t = Trouble { verdict, news, limited: None, of_replaces: false, said, problem: None, acted_on: false };
            conclude::trouble(s, order, None, &t, now).into()
        }
    })
}
