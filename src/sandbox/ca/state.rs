//! Everything the CA remembers, and what it has counted. No sockets, no clock, no system randomness but for keys.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::account::Account;
use super::allowance::Allowance;
use super::authority::{Authority, AuthorityError};
use super::faults::Twist;
use super::numbers::{AccountNo, AuthorizationNo, OrderNo};
use super::order::{Authorization, Order};
use super::settings::Settings;

/// What the CA did, for tests to hold the client against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Accounts made (finding one again does not count).
    pub accounts_created: u64,
    /// Orders made: one per newOrder that was accepted, asked twice or not.
    pub orders_created: u64,
    /// The same by name.
    pub orders_by_name: BTreeMap<String, u64>,
    /// Certificates issued by name.
    pub certificates_by_name: BTreeMap<String, u64>,
    /// Validations that failed, by name.
    pub failed_validations_by_name: BTreeMap<String, u64>,
    /// Orders refused because a limit was passed.
    pub limits_passed: u64,
}

/// The CA's protocol state. Every method that depends on time is told `now`.
pub struct CaState {
    pub(super) settings: Settings,
    pub(super) authority: Authority,
    pub(super) accounts: BTreeMap<AccountNo, Account>,
    pub(super) orders: BTreeMap<OrderNo, Order>,
    /// Orders by the ARI id of the certificate that was issued for them, and those that were made to replace it.
    pub(super) issued_for: BTreeMap<String, OrderNo>,
    pub(super) replacing: BTreeMap<String, Vec<OrderNo>>,
    pub(super) authorizations: BTreeMap<AuthorizationNo, Authorization>,
    pub(super) counters: Counters,
    pub(super) allowance: Allowance,
    /// What is wrong with the next order, and with the next renewal window.
    pub(super) next_order: Vec<Twist>,
    pub(super) next_window: Option<(i64, i64)>,
    rng: StdRng,
}

impl CaState {
    /// An empty CA with new keys; numbers and tokens are drawn from `seed` (32 drawn bytes, so that nobody guesses them).
    pub fn new(settings: Settings, seed: [u8; 32]) -> Result<Self, AuthorityError> {
        Ok(CaState {
            settings,
            authority: Authority::generate("Nameplate sandbox")?,
            accounts: BTreeMap::new(),
            orders: BTreeMap::new(),
            issued_for: BTreeMap::new(),
            replacing: BTreeMap::new(),
            authorizations: BTreeMap::new(),
            counters: Counters::default(),
            allowance: Allowance::default(),
            next_order: Vec::new(),
            next_window: None,
            rng: StdRng::from_seed(seed),
        })
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The keys that sign.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// From now on certificates live so long, and are valid so long before they are issued.
    pub fn live_for(&mut self, lifetime: Duration, backdated: Duration) {
        self.settings.certificate_lifetime = lifetime;
        self.settings.backdated = backdated;
    }

    /// How the CA is set.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) fn draw<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.rng.fill_bytes(&mut bytes);
        bytes
    }
}
