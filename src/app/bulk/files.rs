//! What people take away from an import, written a page at a time: the verdict of every row, and the records of all claims.

use serde_json::json;

use crate::app::{App, AppError};
use crate::model::bulk::{Format, Verdict, sheet};
use crate::model::hostname::Hostname;
use crate::model::id::{ImportId, TenantId};
use crate::model::moment::Moment;
use crate::model::records::{ApexRoute, records};
use crate::store::bulk_rows::{self, ImportRow};

/// Rows read at a time.
const PAGE: i64 = 500;

/// A part of a file, and where the next begins; none after the last.
pub struct Part {
    /// Its text.
    pub text: String,
    /// The row after which the next part begins.
    pub next: Option<i64>,
}

/// The columns of the result file. Corrected, it can be sent as an import again.
const RESULT: [&str; 9] = ["line", "hostname", "tenant", "method", "verdict", "code", "detail", "suggestion", "domain_id"];

/// The verdicts of the rows after number `after`; of those with one verdict only, if it is given.
pub async fn results(
    app: &App,
    id: &ImportId,
    format: Format,
    verdict: Option<Verdict>,
    after: i64,
) -> Result<Part, AppError> {
    let rows = bulk_rows::page(&app.store, id, verdict, after, PAGE).await?;
    let mut text = String::new();
    if after == 0 && format == Format::Csv {
        sheet::line(&RESULT, &mut text);
    }
    for row in &rows {
        write_row(row, format, &mut text);
    }
    Ok(Part { text, next: last(&rows, |row| row.n) })
}

fn last<T>(rows: &[T], n: impl Fn(&T) -> i64) -> Option<i64> {
    let full = i64::try_from(rows.len()).is_ok_and(|len| len >= PAGE);
    rows.last().filter(|_| full).map(n)
}

fn write_row(row: &ImportRow, format: Format, out: &mut String) {
    let refusal = row.refusal.as_ref();
    let (code, detail) = (refusal.map(|r| r.code.as_str()), refusal.map(|r| r.detail.as_str()));
    let suggestion = refusal.and_then(|r| r.suggestion.as_deref());
    let domain = row.domain_id.as_ref().map(|id| id.as_str());
    match format {
        Format::Csv => {
            let line = row.line.to_string();
            let or_empty = Option::unwrap_or_default;
            let cells = [
                line.as_str(),
                &row.typed,
                or_empty(row.tenant.as_deref()),
                or_empty(row.method.as_deref()),
                row.verdict.as_str(),
                or_empty(code),
                or_empty(detail),
                or_empty(suggestion),
                or_empty(domain),
            ];
            sheet::line(&cells, out);
        }
        Format::Ndjson => {
            let document = json!({
                "line": row.line, "hostname": row.typed, "tenant": row.tenant, "method": row.method, "verdict": row.verdict, "code": code,
                "detail": detail, "suggestion": suggestion, "domain_id": domain,
            });
            out.push_str(&document.to_string());
            out.push('\n');
        }
    }
}

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordsAs {
    /// A zone file (RFC 1035 §5).
    Zone,
    /// For a spreadsheet.
    Csv,
}

/// The DNS records of an import's open claims after row `after`, of one tenant only if one is given.
pub async fn dns_records(
    app: &App,
    id: &ImportId,
    (tenant, apex): (Option<&TenantId>, &ApexRoute),
    written: RecordsAs,
    after: i64,
    now: Moment,
) -> Result<Part, AppError> {
    let rows = bulk_rows::published(&app.store, id, tenant, after, PAGE).await?;
    let mut text = String::new();
    if after == 0 {
        match written {
            RecordsAs::Zone => text.push_str(&format!(
                "; Records of {id} as of {}: each line is one record, with its whole name.\n; The TXT records prove who owns a \
                 name, the others lead its visitors here.\n$TTL 300\n",
                now.rfc3339()
            )),
            RecordsAs::Csv => sheet::line(&["hostname", "tenant", "zone", "name", "type", "value", "ttl", "keep"], &mut text),
        }
    }
    for row in &rows {
        let zone = row.hostname.registered_domain();
        for record in records(&row.hostname, &row.value, row.routing_mode, &row.target, apex) {
            match written {
                // ALIAS is a provider's word, not a type of record: a name server would refuse the file.
                RecordsAs::Zone if record.kind == "ALIAS" => {
                    text.push_str(&format!("; where your provider offers ALIAS or ANAME: {}\n", record.zone_line()));
                }
                RecordsAs::Zone => {
                    text.push_str(&record.zone_line());
                    text.push('\n');
                }
                RecordsAs::Csv => {
                    let keep = if record.keep { "yes" } else { "until proven" };
                    let cells =
                        [row.hostname.as_str(), &row.tenant, zone, &record.name, &record.kind, &record.value, "300", keep];
                    sheet::line(&cells, &mut text);
                }
            }
        }
    }
    Ok(Part { text, next: last(&rows, |row| row.n) })
}

/// A name as its readers write it, for pages.
pub fn shown(row: &ImportRow) -> String {
    row.hostname.as_ref().map_or_else(|| row.typed.clone(), Hostname::display)
}
