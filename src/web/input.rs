//! Bodies, queries and paths, whose rejections are problems.

use std::fmt;
use std::marker::PhantomData;

use axum::body::{Body, Bytes};
use axum::extract::rejection::{FormRejection, JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::body;
use super::problem::Problem;
use super::state::WebState;
use crate::model::secret::Secret;

/// A JSON body.
pub(super) struct Json<T>(pub T);

impl<T: DeserializeOwned> FromRequest<WebState> for Json<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, state: &WebState) -> Result<Self, Problem> {
        let (parts, sent) = request.into_parts();
        check_json(&parts.headers)?;
        read_json(&body::read(sent, state).await?).map(Json)
    }
}

/// Whether the body is said to be JSON.
pub(super) fn check_json(headers: &HeaderMap) -> Result<(), Problem> {
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind == "application/json" || kind.starts_with("application/") && kind.ends_with("+json") {
        return Ok(());
    }
    let detail = "Send the body as JSON, with the header Content-Type: application/json.";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", "The body must be JSON", detail))
}

/// What a JSON body says.
pub(super) fn read_json<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, Problem> {
    let read = axum::Json::<Object<T>>::from_bytes(bytes);
    read.map(|axum::Json(Object(value))| value).map_err(|rejection| {
        let (status, code, title) = match &rejection {
            JsonRejection::JsonDataError(_) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "wrong_fields", "The body has not the expected fields")
            }
            _ => (StatusCode::BAD_REQUEST, "bad_json", "The body is not JSON"),
        };
        Problem::new(status, code, title, rejection.body_text())
    })
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

impl<T: DeserializeOwned> FromRequest<WebState> for Form<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, state: &WebState) -> Result<Self, Problem> {
        let (parts, sent) = request.into_parts();
        let bytes = body::read(sent, state).await?;
        let form = axum::Form::<T>::from_request(Request::from_parts(parts, Body::from(bytes)), state).await;
        form.map(|axum::Form(value)| Form(value)).map_err(|rejection| {
            let status = rejection.status();
            let (code, title) = match &rejection {
                FormRejection::InvalidFormContentType(_) => ("not_a_form", "The body must be a form"),
                FormRejection::FailedToDeserializeFormBody(_) => ("wrong_fields", "The form has not the expected fields"),
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

/// No query string: what is there would be a slip.
pub(super) struct NoQuery;

impl<S: Send + Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Nothing {}
        Asked::<Nothing>::from_request_parts(parts, state).await.map(|_| NoQuery)
    }
}

/// Two ids of the path, as text.
pub(super) struct TwoIds(pub String, pub String);

impl<S: Send + Sync> FromRequestParts<S> for TwoIds {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        path.map(|Path((first, second))| TwoIds(first, second)).map_err(|_| Problem::no_route())
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
