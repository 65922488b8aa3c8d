//! What is sent out: requests signed for webhooks, messages for people.
//!
//! - [`webhook`] makes the request of a delivery by the Standard Webhooks scheme: its id, its time, its signatures.
//! - [`message`] words a message from what is to be told; [`mail`] hands messages to an SMTP server.
//!
//! Nothing here decides what is told to whom, or when again: that is in rows, which `app::notify` works through. May import
//! `config telemetry env model`; lettre has its home in [`mail`]. To fake it: a [`mail::Mailer`] that keeps what it is given.
//! How to get it wrong: put a text of somebody else's into a header by hand; sign something else than what is sent.

pub mod mail;
pub mod message;
pub mod webhook;
