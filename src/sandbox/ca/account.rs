//! Accounts (RFC 8555 §7.3): one per key.

use super::numbers::AccountNo;
use super::problem::{Kind, Problem};
use super::state::CaState;

/// Where an account stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountStatus {
    /// It may order.
    Valid,
    /// Its holder closed it; nothing it signs counts any more.
    Deactivated,
}

/// An account.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub thumbprint: String,
    pub status: AccountStatus,
    pub contacts: Vec<String>,
}

impl CaState {
    /// Makes an account for a key, or finds the one it has; true when it is new.
    pub fn new_account(&mut self, thumbprint: &str) -> (AccountNo, bool) {
        if let Some(known) = self.account_of_key(thumbprint) {
            return (known, false);
        }
        let no = AccountNo::drawn(self.draw());
        let account = Account { thumbprint: thumbprint.to_owned(), status: AccountStatus::Valid, contacts: Vec::new() };
        self.accounts.insert(no.clone(), account);
        self.counters.accounts_created += 1;
        (no, true)
    }

    /// The account a key has.
    pub fn account_of_key(&self, thumbprint: &str) -> Option<AccountNo> {
        self.accounts.iter().find(|(_, a)| a.thumbprint == thumbprint).map(|(no, _)| no.clone())
    }

    /// Where an account stands, and the contacts it gave.
    pub fn account(&self, no: &AccountNo) -> Result<(AccountStatus, &[String]), Problem> {
        let account = self.accounts.get(no).ok_or_else(|| unknown(no))?;
        Ok((account.status, &account.contacts))
    }

    /// Replaces an account's contacts, which must be mail addresses (§7.3).
    pub fn update_contacts(&mut self, no: &AccountNo, contacts: Vec<String>) -> Result<(), Problem> {
        if let Some(odd) = contacts.iter().find(|c| !c.starts_with("mailto:") || c.contains(',') || !c.contains('@')) {
            return Err(Problem::new(
                Kind::UnsupportedContact,
                format!("contact {odd:?} is not a mailto: URL of one address"),
            ));
        }
        self.accounts.get_mut(no).ok_or_else(|| unknown(no))?.contacts = contacts;
        Ok(())
    }

    /// Closes an account for ever (§7.3.6).
    pub fn deactivate_account(&mut self, no: &AccountNo) -> Result<(), Problem> {
        self.accounts.get_mut(no).ok_or_else(|| unknown(no))?.status = AccountStatus::Deactivated;
        Ok(())
    }

    /// The account behind a request, which must be open.
    pub(super) fn open_account(&self, no: &AccountNo) -> Result<&Account, Problem> {
        let account = self.accounts.get(no).ok_or_else(|| unknown(no))?;
        match account.status {
            AccountStatus::Valid => Ok(account),
            AccountStatus::Deactivated => {
                Err(Problem::new(Kind::Unauthorized, format!("account {no} is deactivated")).with_status(401))
            }
        }
    }
}

pub(super) fn unknown(no: &AccountNo) -> Problem {
    Problem::new(Kind::AccountDoesNotExist, format!("there is no account {no} here"))
}
