//! Replacing certificates out of turn: what an operator does after a CA's mistake, or before it is left.
//!
//! What is asked for is durable before anything is selected; selecting goes on in whatever process is there ([`round`]). Orders wait
//! behind all whose certificate is due, or among them where an operator says that it cannot wait. When it will be done is told by the queue itself, played with those who have yet to join it.

use std::time::Duration;

use serde_json::json;

use super::{App, AppError};
use crate::env::Env;
use crate::mint;
use crate::model::id::{EventId, ReissueId};
use crate::model::moment::Moment;
use crate::model::order::Lane;
use crate::model::outcome::NewEvent;
use crate::store::reissues::{self, GivenUp, ReissueRow, Selected, Selection};
use crate::store::{Store, StoreResult, Tx};
use crate::telemetry::Chain;

/// Names are looked at anew before they are ordered for: so many a second begin.
const A_SECOND: u32 = 10;

/// What is told when one begins, is done, is given up.
pub const BEGAN: &str = "reissue_began";
/// All of it is replaced.
pub const FINISHED: &str = "reissue_finished";
/// What is left of it is given up.
pub const GIVEN_UP: &str = "reissue_given_up";

/// A selection in words.
fn in_words(selection: &Selection) -> String {
    match selection {
        Selection::Issuer(name) => format!("issued by {name}"),
        Selection::Serials(serials) => format!("{} serial numbers", serials.iter().filter(|s| !s.starts_with("00")).count()),
        Selection::Before(at) => format!("valid from before {at}"),
    }
}

/// A serial number as lists have it (hex with or without colons, `0x` or leading zeros) in both forms that DER has it in, with and without
/// a zero octet before a set first bit; nothing for what is none.
pub fn serial_forms(text: &str) -> Option<[String; 2]> {
    let hex: String = text.chars().filter(|c| !matches!(c, ':' | ' ')).collect::<String>().to_ascii_lowercase();
    let hex = hex.trim_start_matches("0x").trim_start_matches('0');
    if hex.is_empty() || hex.len() > 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let even = if hex.len().is_multiple_of(2) { hex.to_owned() } else { format!("0{hex}") };
    Some([format!("00{even}"), even])
}

/// The selection of these serial numbers.
pub fn of_serials(forms: impl IntoIterator<Item = [String; 2]>) -> Selection {
    let mut all: Vec<String> = forms.into_iter().flatten().collect();
    all.sort();
    all.dedup();
    Selection::Serials(all)
}

fn news(kind: &'static str, actor: &str, cause: String, id: &str, row: Option<&ReissueRow>) -> NewEvent {
    let detail =
        json!({"reissue": id, "certificates": row.map(|row| row.certificates), "given_up": row.map(|row| row.given_up)});
    NewEvent { kind, actor: actor.to_owned(), cause, detail }
}

/// What is written down, before any of it is selected.
#[derive(Clone, Debug)]
pub struct Begun {
    /// Its id.
    pub id: ReissueId,
    /// What is selected, in words.
    pub selection: String,
    /// Whether it cannot wait behind those whose certificate is due.
    pub hurries: bool,
    /// Who asked for it.
    pub actor: String,
    /// When.
    pub at: Moment,
}

/// Writes down that what is selected is to be replaced. Nothing is lost from here on; [`go_on`] or any process's [`round`] does it.
///
/// In the lane of renewals it is placed among those whose certificate is due, in any other after them.
pub async fn begin(tx: &mut Tx, env: &Env, selection: &Selection, lane: Lane, actor: &str) -> StoreResult<Begun> {
    let (id, at, hurries) = (mint!(env, ReissueId), env.now(), lane == Lane::Renewal);
    let words = in_words(selection);
    reissues::create(tx, &id, &words, selection, hurries, actor, at).await?;
    let told = news(BEGAN, actor, format!("certificates in use are to be replaced: those {words}"), id.as_str(), None);
    reissues::tell(tx, &mint!(env, EventId), &told, at).await?;
    Ok(Begun { id, selection: words, hurries, actor: actor.to_owned(), at })
}

/// The same, and selects at once.
pub async fn begin_now(store: &Store, env: &Env, selection: &Selection, lane: Lane, actor: &str) -> StoreResult<Begun> {
    let mut tx = store.begin().await?;
    let begun = begin(&mut tx, env, selection, lane, actor).await?;
    tx.commit().await?;
    go_on(store, begun.id.as_str()).await?;
    Ok(begun)
}

/// Selects what is not selected yet, from where whoever did so before was stopped.
pub async fn go_on(store: &Store, id: &str) -> StoreResult<()> {
    while let Some(row) = reissues::find(store, id).await? {
        let (Some(from), Some(wanted)) = (&row.marking, &row.wanted) else { return Ok(()) };
        let Ok(id) = row.id.parse::<ReissueId>() else { return Ok(()) };
        let page = reissues::select(store, wanted, row.created_at, from).await?;
        let begun = usize::try_from(row.certificates).unwrap_or(0);
        let these: Vec<(Selected, Moment)> =
            page.these.into_iter().enumerate().map(|(n, s)| (s, due(row.created_at, begun + n))).collect();
        // Whether it was us or somebody else: the row says where it goes on.
        reissues::mark(store, &id, from, page.next.as_deref(), &these).await?;
    }
    Ok(())
}

/// When the n-th begins.
pub fn due(begin: Moment, n: usize) -> Moment {
    begin + Duration::from_secs(1) / A_SECOND * u32::try_from(n).unwrap_or(u32::MAX)
}

/// Gives one up: what only waits ends, what is at the CA goes on.
pub async fn cancel(store: &Store, env: &Env, id: &str, actor: &str) -> StoreResult<GivenUp> {
    let mut tx = store.begin().await?;
    let cause = "a replacement is given up; what is at the CA already goes on".to_owned();
    let given_up =
        reissues::give_up(&mut tx, id, &mint!(env, EventId), &news(GIVEN_UP, actor, cause, id, None), env.now()).await?;
    tx.commit().await?;
    if given_up == GivenUp::Now {
        while reissues::unmark(store, id, env.now()).await? {}
    }
    Ok(given_up)
}

/// One round: whatever was begun and stopped on the way goes on, and what is done is told.
pub async fn round(app: &App) -> Result<(), AppError> {
    for row in reissues::open(&app.store).await? {
        // What is wrong with one keeps no other back.
        if let Err(error) = one(app, &row).await {
            tracing::warn!(error = %Chain(&error), reissue.id = row.id, "a replacement could not be gone on with; trying again");
        }
    }
    Ok(())
}

async fn one(app: &App, row: &ReissueRow) -> Result<(), AppError> {
    if row.cancelled_at.is_some() {
        while reissues::unmark(&app.store, &row.id, app.env.now()).await? {}
    } else if row.marking.is_some() {
        go_on(&app.store, &row.id).await?;
    } else if row.left == 0 {
        let said = "everything that was to be replaced is replaced".to_owned();
        let told = news(FINISHED, "nameplate", said, &row.id, Some(row));
        reissues::finish(&app.store, &row.id, &mint!(app.env, EventId), &told, app.env.now()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_are_read_as_lists_have_them() {
        let forms = |text| serial_forms(text).map(|forms| forms.join(" "));
        assert_eq!(forms("04:A7:c3").as_deref(), Some("0004a7c3 04a7c3"));
        assert_eq!(forms("0xff01").as_deref(), Some("00ff01 ff01"));
        assert_eq!(forms("4a7c3").as_deref(), Some("0004a7c3 04a7c3"));
        for wrong in ["", "0", "xyz", "\u{202e}04", &"f".repeat(65)] {
            assert_eq!(forms(wrong), None, "{wrong:?}");
        }
    }
}
