//! The uniform error format of the API.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use muster_api::Finding;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Refused;

/// The kind of error, in one word that programs can rely on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Code")]
pub enum ErrorCode {
    /// The request cannot be parsed.
    BadRequest,
    /// The credential is missing or unknown.
    Unauthorized,
    /// The caller may not do this.
    Forbidden,
    /// No such object, or no such path.
    NotFound,
    /// The path exists, but not with this method.
    MethodNotAllowed,
    /// The body did not arrive in time.
    TooSlow,
    /// It conflicts with the present state.
    Conflict,
    /// The body is too large.
    TooLarge,
    /// The body's media type is not supported.
    UnsupportedMediaType,
    /// The request was parsed, but is not valid. Manifests come with findings.
    Invalid,
    /// The idempotency key was used for another request.
    KeyReused,
    /// The caller has too many requests, streams or changes at once.
    TooMany,
    /// A bug. Details are in the server's log.
    Internal,
    /// This host does not support the operation.
    Unsupported,
    /// Not possible now; a retry may succeed.
    Unavailable,
}

impl ErrorCode {
    fn status(self) -> StatusCode {
        match self {
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Conflict => StatusCode::CONFLICT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Invalid | Self::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unsupported => StatusCode::NOT_IMPLEMENTED,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// The body of every error response.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Failed")]
pub struct ErrorBody {
    /// The error.
    pub error: ApiError,
}

/// An error.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Failure")]
pub struct ApiError {
    /// In one word.
    pub code: ErrorCode,
    /// In a sentence.
    pub message: Cow<'static, str>,
    /// Findings in the manifests, with positions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub findings: Vec<Finding>,
}

impl ApiError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), findings: Vec::new() }
    }

    pub(crate) fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::BadRequest, message)
    }
}

/// Findings in one response, at most; the message has the total.
const FINDINGS: usize = 100;
/// Characters of a finding's field and reason, at most. Both may quote the request.
const FINDING_CHARACTERS: usize = 500;

fn shortened(mut finding: Finding) -> Finding {
    for text in [&mut finding.field, &mut finding.reason] {
        if let Some((at, _)) = text.char_indices().nth(FINDING_CHARACTERS) {
            text.truncate(at);
            text.push_str("...");
        }
    }
    finding
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        match refused {
            Refused::NotFound(_) => Self::new(ErrorCode::NotFound, message),
            Refused::Conflict(_) => Self::new(ErrorCode::Conflict, message),
            Refused::Forbidden(_) => Self::new(ErrorCode::Forbidden, message),
            Refused::Invalid(_) => Self::new(ErrorCode::Invalid, message),
            Refused::KeyReused(_) => Self::new(ErrorCode::KeyReused, message),
            Refused::Unsupported(_) => Self::new(ErrorCode::Unsupported, message),
            Refused::Unavailable(_) => Self::new(ErrorCode::Unavailable, message),
            Refused::Findings(findings) => {
                let findings = findings.into_iter().take(FINDINGS).map(shortened).collect();
                Self { code: ErrorCode::Invalid, message: message.into(), findings }
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let code = self.code;
        let mut response = json(code.status(), &ErrorBody { error: self });
        let headers = response.headers_mut();
        if code == ErrorCode::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(code, ErrorCode::TooMany | ErrorCode::Unavailable) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// A response in JSON.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(text) => typed(status, "application/json", text),
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written as JSON");
            typed(StatusCode::INTERNAL_SERVER_ERROR, "application/json", UNWRITABLE)
        }
    }
}

/// The response when serialization fails.
const UNWRITABLE: &str =
    r#"{"error":{"code":"internal","message":"the answer cannot be written as JSON"}}"#;

/// A response with a content type.
pub(crate) fn typed(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    (status, [(header::CONTENT_TYPE, kind)], body.into()).into_response()
}
