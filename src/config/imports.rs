//! `imports`: files of names.

use std::time::Duration;

use super::reader::Reader;

/// The section.
#[derive(Clone, Copy, Debug)]
pub struct ImportsConfig {
    /// Rows of one file at most.
    pub max_rows: u32,
    /// Bytes of one file at most.
    pub max_bytes: u64,
    /// How long a file may take to arrive.
    pub upload_timeout: Duration,
}

impl ImportsConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let config = ImportsConfig {
            max_rows: r.value("imports.max_rows", 100_000, "Rows that one imported file may have."),
            max_bytes: r.value("imports.max_bytes", 64 * 1024 * 1024, "Bytes that one imported file may have."),
            upload_timeout: r.value(
                "imports.upload_timeout",
                Duration::from_secs(600),
                "How long an imported file may take to arrive; between two pieces of it `api.body_timeout` holds.",
            ),
        };
        if config.max_rows == 0 {
            r.problem("imports.max_rows", "", "is 0; it must be at least 1".into());
        }
        config
    }
}
