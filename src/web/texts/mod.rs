//! Every text of every page, in one place: [`english`] is the list, a file for each group of pages.
//!
//! A template holds no words: it names them, as `t::expected()`, and a test reads all templates for any that slipped in. A text
//! with values names them too (`t::in_zone(zone)`), so that a missing one does not compile; where in the sentence a value stands is
//! the text's business, since languages differ. Markup is the little that sentences need: `*strong*` and `` `code` ``; values are
//! escaped, set apart where they might turn the writing around them, and never read as markup. What a look found is worded by the catalogue of
//! reasons and the words beside the judges, which the API and the log share: a translation of those goes by their codes.
//!
//! To translate: a second list with the same keys, chosen by the reader's language where [`english`]'s functions are. How to get it
//! wrong: build a sentence from two texts, or put a value into a text before it is one.

mod english;
mod said;
#[cfg(test)]
mod tests;

pub(super) use english::*;
