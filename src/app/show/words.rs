//! The closed sets of words in the documents, as their description has them: written from the sets themselves.

use serde::Serialize;
use utoipa::openapi::schema::{Array, ArrayBuilder, Object, ObjectBuilder, SchemaType, Type};

use super::reissues;
use crate::model::alert::cause::Class;
use crate::model::alert::kinds;
use crate::model::bulk::{Format, Hold, ImportState, Verdict as RowVerdict};
use crate::model::claim::Claim;
use crate::model::domain::{HoldingState, TieState};
use crate::model::email::ContactKind;
use crate::model::evidence::{Actor, Check, Verdict};
use crate::model::order::{Lane, OrderState, Purpose};
use crate::model::tenant::TenantStatus;

fn set<T: Serialize>(words: &[T]) -> Object {
    let words: Vec<serde_json::Value> = words.iter().filter_map(|word| serde_json::to_value(word).ok()).collect();
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build()
}

/// Whatever JSON there is.
pub(in crate::app) fn anything() -> Object {
    ObjectBuilder::new().schema_type(SchemaType::AnyValue).build()
}

/// States of a claim.
pub fn claim() -> Object {
    set(Claim::ALL)
}

/// States of a tenant.
pub fn tenant_status() -> Object {
    set(&[TenantStatus::Active, TenantStatus::Moving, TenantStatus::Suspended, TenantStatus::Deleted])
}

/// Whose trouble an alert is.
pub(super) fn alert_class() -> Object {
    set(Class::ALL)
}

/// What becomes of something that is sent.
pub fn delivery_state() -> Object {
    set(&["pending", "delivered", "dropped", "given_up"])
}

/// Kinds of events that can be subscribed to.
pub fn event_kinds() -> Array {
    let words: Vec<&str> = std::iter::once(kinds::EVERYTHING).chain(kinds::KINDS.iter().map(|kind| kind.word)).collect();
    ArrayBuilder::new().items(set(&words)).min_items(Some(1)).build()
}

/// What is sent to a contact.
pub fn contact_kind() -> Object {
    set(ContactKind::ALL)
}

pub(super) fn check() -> Object {
    set(Check::ALL)
}

pub(super) fn verdict() -> Object {
    set(&[Verdict::Pass, Verdict::Wait, Verdict::Fail, Verdict::Unknown])
}

pub(in crate::app) fn actor() -> Object {
    set(Actor::ALL)
}

pub(in crate::app) fn order_state() -> Object {
    set(OrderState::ALL)
}

pub(in crate::app) fn purpose() -> Object {
    set(Purpose::ALL)
}

pub(in crate::app) fn lane() -> Object {
    set(Lane::ALL)
}

pub(in crate::app) fn holding_state() -> Object {
    set(HoldingState::ALL)
}

pub(in crate::app) fn tie() -> Object {
    set(TieState::ALL)
}

/// How a file of names is written.
pub fn import_format() -> Object {
    set(Format::ALL)
}

/// States of an import that anybody sees.
pub fn import_state() -> Object {
    let seen: Vec<ImportState> = ImportState::ALL.iter().copied().filter(|s| *s != ImportState::Broken).collect();
    set(&seen)
}

/// How far a replacement is.
pub(super) fn reissue_state() -> Object {
    set(reissues::State::ALL)
}

pub(super) fn hold() -> Object {
    set(Hold::ALL)
}

/// Verdicts on a row.
pub fn row_verdict() -> Object {
    set(RowVerdict::ALL)
}
