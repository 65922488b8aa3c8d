//! Bodies, queries and paths, whose rejections are problems.

use std::fmt;
use std::marker::PhantomData;

use axum::extract::rejection::{FormRejection, JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::problem::Problem;
use crate::model::secret::Secret;

/// A JSON body.
pub(super) struct Json<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let body = axum::Json::<Object<T>>::from_request(request, state).await;
        body.map(|axum::Json(Object(value))| Json(value)).map_err(|rejection| {
            let status = rejection.status();
            let (code, title) = match (&rejection, status) {
                (_, StatusCode::PAYLOAD_TOO_LARGE) => ("body_too_large", "The body is too large"),
                (JsonRejection::MissingJsonContentType(_), _) => ("not_json", "The body must be JSON"),
                (JsonRejection::JsonDataError(_), _) => ("wrong_fields", "The body has not the expected fields"),
                _ => ("bad_json", "The body is not JSON"),
            };
            let status = if code == "wrong_fields" { StatusCode::UNPROCESSABLE_ENTITY } else { status };
            Problem::new(status, code, title, rejection.body_text())
        })
    }
}

/// What is read from a JSON object and from nothing else: by themselves structs are also read from lists, by position.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object such as {\"field\": \"value\"}")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(Fields(PhantomData)).map(Object)
    }
}

/// The fields of a form.
pub(super) struct Form<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Form<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let form = axum::Form::<T>::from_request(request, state).await;
        form.map(|axum::Form(value)| Form(value)).map_err(|rejection| {
            let status = rejection.status();
            let (code, title) = match (&rejection, status) {
                (_, StatusCode::PAYLOAD_TOO_LARGE) => ("body_too_large", "The body is too large"),
                (FormRejection::InvalidFormContentType(_), _) => ("not_a_form", "The body must be a form"),
                (FormRejection::FailedToDeserializeFormBody(_), _) => {
                    ("wrong_fields", "The form has not the expected fields")
                }
                _ => ("bad_form", "The form is not readable"),
            };
            Problem::new(status, code, title, rejection.body_text())
        })
    }
}

/// A query string.
pub(super) struct Asked<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(value)| Asked(value)).map_err(|rejection: QueryRejection| {
            Problem::new(StatusCode::BAD_REQUEST, "bad_query", "The query is not understood", rejection.body_text())
        })
    }
}

/// The `{token}` of the path, which is not written to the log: routes are.
pub(super) struct LinkText(pub Secret);

impl<S: Send + Sync> FromRequestParts<S> for LinkText {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(text)| LinkText(Secret::from(text))).map_err(|_| Problem::no_route())
    }
}

/// The `{id}` of the path, as text: whoever reads it says what is not found.
pub(super) struct Id(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(id)| Id(id)).map_err(|_| Problem::no_route())
    }
}
