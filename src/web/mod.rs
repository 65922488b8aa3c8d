//! The API and the pages.
//!
//! A router over [`WebState`]; what changes something is a use case of `app`, what is shown comes from `app::show`. Every
//! answer that says no is a [`Problem`]: handlers return it, and one layer writes it as RFC 9457 JSON or, to people, as a
//! page. What belongs to another tenant answers exactly as what does not exist. Links are built from `server.public_url`,
//! never from a request's Host; the API takes bearer tokens only, so that no browser sends credentials by itself, and the
//! pages take a session's cookie only, with a token of that session in every form beside the Origin check. May import `app` and what lies beneath. To fake it: an
//! `App` of scripted adapters. How to get it wrong: answer 403 for somebody else's id, or look a domain up
//! without asking whose it is.

mod access;
mod api;
mod auth;
mod body;
mod brand;
mod connect;
mod cookie;
mod form;
mod frame;
mod freshness;
mod health;
mod input;
mod links;
mod live;
mod measure;
mod once;
mod pace;
mod pages;
mod problem;
mod problems;
mod request_id;
mod router;
mod serve;
mod state;
mod texts;
mod visible;
mod zone_file;

pub use api::description::document as openapi_document;
pub use brand::{Brand, LogoError};
pub use connect::Connect;
pub use links::query;
pub use live::Live;
pub use problem::{FieldError, Problem};
pub use problems::PROBLEMS;
pub use router::{ROUTES, Route, router};
pub use serve::serve;
pub use state::{WebSettings, WebState};
