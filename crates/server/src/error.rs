//! The one shape every error has, whoever found it.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use muster_api::Finding;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Refused;

/// What is wrong, in one word that programs can rely on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Code")]
pub enum ErrorCode {
    /// The request cannot be understood.
    BadRequest,
    /// Nobody knows who asks.
    Unauthorized,
    /// Whoever asks may not do this.
    Forbidden,
    /// There is no such thing, or no such path.
    NotFound,
    /// The path is right, the method is not.
    MethodNotAllowed,
    /// The body did not arrive in time.
    TooSlow,
    /// It does not fit what is there.
    Conflict,
    /// The body is too large.
    TooLarge,
    /// The body is in a format that is not read here.
    UnsupportedMediaType,
    /// The request can be understood and makes no sense. Manifests bring findings.
    Invalid,
    /// The idempotency key was used for another request.
    KeyReused,
    /// Whoever asks has too much open at once.
    TooMany,
    /// A bug. It is in the log.
    Internal,
    /// This host cannot do such a thing at all.
    Unsupported,
    /// It cannot be done now, and may be later.
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

/// The body of every answer that is an error.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Failed")]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ApiError,
}

/// What went wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Failure")]
pub struct ApiError {
    /// In one word.
    pub code: ErrorCode,
    /// In a sentence.
    pub message: Cow<'static, str>,
    /// What is wrong with the manifests, and where.
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

/// Findings in one answer, at most; its message says how many there are.
const FINDINGS: usize = 100;
/// Characters of a finding's field and reason, at most. Both may quote what was sent.
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

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(text) => typed(status, "application/json", text),
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written as JSON");
            typed(StatusCode::INTERNAL_SERVER_ERROR, "application/json", UNWRITABLE)
        }
    }
}

/// What is answered when an answer cannot be written.
const UNWRITABLE: &str =
    r#"{"error":{"code":"internal","message":"the answer cannot be written as JSON"}}"#;

/// An answer of some type.
pub(crate) fn typed(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    (status, [(header::CONTENT_TYPE, kind)], body.into()).into_response()
}
