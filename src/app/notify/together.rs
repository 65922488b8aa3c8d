//! The lines of a message. What shares a cause, where it is more than a reader goes through, is one line with a count.

use std::collections::BTreeMap;

use crate::model::alert::cause::Cause;
use crate::model::alert::kinds::{CERTIFICATE_ENDING, RENEWAL_AT_RISK};
use crate::model::moment::Moment;
use crate::notify::message::{Item, LISTED};
use crate::store::mail_items::ItemRow;

/// Names in a line that stands for many things.
const NAMED: usize = 20;

/// What things have in common: their kind, their cause, and where the record stands that is it.
type Shared<'a> = (&'a str, &'a str, &'a str);

fn text<'a>(item: &'a ItemRow, field: &str) -> Option<&'a str> {
    item.detail.get(field).and_then(serde_json::Value::as_str)
}

fn shared(item: &ItemRow) -> Option<Shared<'_>> {
    let kind = item.kind.as_str();
    let grouped = matches!(kind, CERTIFICATE_ENDING | RENEWAL_AT_RISK);
    grouped.then(|| Some((kind, text(item, "cause")?, text(item, "found_at").unwrap_or_default()))).flatten()
}

/// The lines.
pub(super) fn lines<'a>(items: impl Iterator<Item = &'a ItemRow> + Clone) -> Vec<Item> {
    let mut by_cause: BTreeMap<Shared<'_>, Vec<&ItemRow>> = BTreeMap::new();
    for item in items.clone() {
        if let Some(cause) = shared(item) {
            by_cause.entry(cause).or_default().push(item);
        }
    }
    by_cause.retain(|_, items| items.len() > LISTED);
    let mut lines: Vec<Item> = by_cause.iter().map(|((kind, cause, _), items)| together(kind, cause, items)).collect();
    let alone = items.filter(|item| shared(item).is_none_or(|cause| !by_cause.contains_key(&cause)));
    lines.extend(alone.map(|item| Item { hostname: item.hostname.clone(), said: item.cause.clone(), at: item.at }));
    lines
}

fn together(kind: &str, cause: &str, items: &[&ItemRow]) -> Item {
    let names: Vec<&str> = items.iter().filter_map(|item| item.hostname.as_deref()).take(NAMED).collect();
    let (many, because) = (items.len(), Cause::sentence(cause));
    let begins = match kind {
        RENEWAL_AT_RISK => format!("{many} renewals will fail for one cause unless it is mended. {because}{}", dated(items)),
        _ => format!("{many} certificates end soon for one cause. {because}"),
    };
    let said = format!("{begins} Among them: {} and {} more", names.join(", "), many - names.len());
    Item { hostname: None, said, at: items.iter().map(|item| item.at).max().unwrap_or_default() }
}

/// The first of their days, and what to do where that is the same for all.
fn dated(items: &[&ItemRow]) -> String {
    let first = |field| {
        let all = items.iter().filter_map(|item| text(item, field).and_then(Moment::from_rfc3339));
        all.min().map_or_else(|| "an unknown day".to_owned(), Moment::in_words)
    };
    let advice = items.first().and_then(|item| text(item, "advice")).unwrap_or_default();
    let same = !advice.is_empty() && items.iter().all(|item| text(item, "advice") == Some(advice));
    let advice = if same { format!(" {advice}") } else { String::new() };
    format!("{advice} The first is due on {}, and the first certificate ends on {}.", first("renews_at"), first("not_after"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::env::Env;
    use crate::env::manual::Hand;
    use crate::mint;
    use crate::model::id::EventId;

    fn at_risk(n: usize, advice: &str, env: &Env) -> ItemRow {
        let day = Moment::from_secs(1_800_000_000 + i64::try_from(n).unwrap() * 86_400);
        let name = format!("n{n}.acme.test");
        ItemRow {
            event_id: mint!(env, EventId),
            whose: String::new(),
            kind: RENEWAL_AT_RISK.to_owned(),
            cause: format!("the renewal of {name} will fail"),
            detail: json!({
                "cause": "tenant_dns/caa_excludes_ca", "found_at": "acme.test", "advice": advice,
                "renews_at": day.rfc3339(), "not_after": day.rfc3339(),
            }),
            hostname: Some(name),
            at: day,
            attempts: 0,
            refusals: 0,
            is_contact: true,
            left: false,
        }
    }

    #[test]
    fn one_record_over_many_names_is_one_line_with_its_first_day() {
        let env = Hand::new(Moment::from_secs(1_800_000_000), 1).env();
        let items: Vec<ItemRow> = (0..=LISTED).map(|n| at_risk(n, "Add the record.", &env)).collect();
        let lines = super::lines(items.iter());
        assert_eq!(lines.len(), 1);
        let (said, first) = (&lines[0].said, Moment::from_secs(1_800_000_000).in_words());
        assert!(said.starts_with("26 renewals will fail for one cause") && said.contains("Add the record."), "{said}");
        assert!(said.contains(&format!("The first is due on {first}")) && said.ends_with("and 6 more"), "{said}");
        // Advice that is not the same for all is left to the names' own pages.
        let mixed: Vec<ItemRow> = (0..=LISTED).map(|n| at_risk(n, &format!("Mend {n}."), &env)).collect();
        assert!(!super::lines(mixed.iter())[0].said.contains("Mend"));
        // As many as a reader goes through are told one by one.
        assert_eq!(super::lines(items.iter().take(LISTED)).len(), LISTED);
    }
}
