//! The words of an import.

use crate::model::vocabulary::vocabulary;

vocabulary! {
    /// How a file is written.
    Format {
        /// A header line, then cells with commas, semicolons or tabs between them.
        Csv = "csv",
        /// One JSON object a line.
        Ndjson = "ndjson",
    }

    /// Where an import stands.
    ImportState {
        /// The file is still arriving; nothing of it counts yet.
        Receiving = "receiving",
        /// Its rows are being judged, one after the other.
        Working = "working",
        /// Held by somebody; rows that were judged stay so.
        Paused = "paused",
        /// Every row has its verdict.
        Done = "done",
        /// Given up by somebody; rows without a verdict get none.
        Cancelled = "cancelled",
        /// The file broke off or was none: its rows are being thrown away.
        Broken = "broken",
    }

    /// What keeps the claims of an import from being ordered for.
    Hold {
        /// Its tenant paused it.
        ByTenant = "paused_by_tenant",
        /// The platform's operator paused it.
        ByOperator = "paused_by_operator",
        /// It was given up.
        Cancelled = "cancelled",
    }

    /// What became of a row.
    Verdict {
        /// Not judged yet.
        Pending = "pending",
        /// Its name is claimed.
        Claimed = "claimed",
        /// The tenant had claimed it before.
        Already = "already_yours",
        /// In a dry run: it would be claimed.
        WouldClaim = "would_be_claimed",
        /// The same as an earlier row.
        Duplicate = "duplicate",
        /// Not taken, and why.
        Refused = "refused",
        /// The import was given up before its turn.
        Cancelled = "cancelled",
    }
}

impl ImportState {
    /// Whether nothing more will happen by itself.
    pub fn is_over(self) -> bool {
        matches!(self, ImportState::Done | ImportState::Cancelled | ImportState::Broken)
    }
}
