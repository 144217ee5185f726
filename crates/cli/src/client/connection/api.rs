//! The control plane's API, as far as the command uses it.

use std::path::PathBuf;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response};
use muster_server::Kind;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::client::connection::address::{Query, encode, gang_path, path_of};
use crate::client::connection::connect::Target;
use crate::client::connection::error::{Refusal, RequestError};
use crate::client::connection::lines::Lines;
use crate::client::connection::wire::Wire;
use crate::exit::UsageError;
use crate::owner_credential;

/// The timeout for the body of an answer.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// The backoff between tries of a change, where a retry can help.
const RETRY_DELAYS: [Duration; 3] =
    [Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];
/// The most objects that the server puts on a page.
const PAGE: &str = "1000";

/// The client of one control plane.
pub(crate) struct Api {
    wire: Wire,
    credential: Credential,
    /// The namespace of gangs that are given without one.
    pub(crate) namespace: Option<String>,
}

/// The credential that is sent with every request.
enum Credential {
    None,
    Token(HeaderValue),
    /// The token of the owner of this data directory, while a control plane runs there. Looked up before every request,
    /// so that a process that has taken the port of a control plane that ended does not receive it.
    Owner(PathBuf),
}

/// The body and the headers of a request.
#[derive(Clone, Default)]
pub(crate) struct Payload<'a> {
    /// The media type of the body, and the body.
    pub(crate) body: Option<(&'static str, &'a str)>,
    /// The idempotency key: the same request with the same key is applied once.
    pub(crate) key: Option<&'a str>,
}

/// All objects of a kind, and the number of the newest event that they include.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) items: Vec<Value>,
    pub(crate) newest: u64,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Value>,
    #[serde(rename = "continue")]
    go_on: Option<String>,
    newest: u64,
}

/// The answer of a request for a list.
#[derive(Deserialize)]
pub(crate) struct Items<T> {
    pub(crate) items: Vec<T>,
}

impl Api {
    /// A client. Nothing is sent yet.
    pub(crate) fn new(target: &Target) -> anyhow::Result<Self> {
        let hint = match target.here {
            true => "; the control plane of this machine has ended, start it with `muster up`",
            false => "",
        };
        let wire = Wire::new(&target.url, target.ca_file.as_deref(), hint)?;
        let bearer = |token: &String| {
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            value.map_err(|_| UsageError("the token contains invalid characters".to_owned()))
        };
        let credential = match (&target.token, &target.owner) {
            (Some(token), _) => Credential::Token(bearer(token)?),
            (None, Some(data)) => Credential::Owner(data.clone()),
            (None, None) => Credential::None,
        };
        Ok(Self { wire, credential, namespace: target.namespace.clone() })
    }

    /// The address of the control plane.
    pub(crate) fn url(&self) -> &str {
        &self.wire.url
    }

    /// Sends a request that changes nothing, and reads the answer.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, RequestError> {
        let answer = self.send(Method::GET, path, &Payload::default(), "application/json").await?;
        self.read(answer).await
    }

    /// Sends a change, with retries where they can help: with its key it is applied once.
    pub(crate) async fn change(
        &self,
        method: Method,
        path: &str,
        sent: Payload<'_>,
    ) -> Result<Option<Value>, RequestError> {
        let made = key();
        let sent = Payload { key: sent.key.or(Some(&made)), ..sent };
        let mut waits = RETRY_DELAYS.iter();
        loop {
            let asked = self.send(method.clone(), path, &sent, "application/json").await;
            let answered = match asked {
                Ok(answer) => self.body(answer).await,
                Err(error) => Err(error),
            };
            match (answered, waits.next()) {
                (Ok(body), _) if body.is_empty() => return Ok(None),
                (Ok(body), _) => return self.parse(&body).map(Some),
                (Err(error), Some(wait)) if error.is_transient() => sleep(*wait).await,
                (Err(error), _) => return Err(error),
            }
        }
    }

    /// Sends a request that has a body and changes nothing.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        sent: Payload<'_>,
    ) -> Result<T, RequestError> {
        let answer = self.send(Method::POST, path, &sent, "application/json").await?;
        self.read(answer).await
    }

    /// Opens a stream of lines. After `silence` without any data the stream counts as lost.
    pub(crate) async fn stream(
        &self,
        path: &str,
        accept: &'static str,
        silence: Option<Duration>,
    ) -> Result<Lines, RequestError> {
        let answer = self.send(Method::GET, path, &Payload::default(), accept).await?;
        Ok(Lines::new(answer.into_body(), self.url(), silence))
    }

    /// Lists the objects of a kind that match a query, page by page.
    pub(crate) async fn list(&self, kind: Kind, wanted: &Query) -> Result<List, RequestError> {
        let mut list = List::default();
        let mut go_on: Option<String> = None;
        loop {
            let query = wanted.clone().with("limit", PAGE).maybe("continue", go_on.as_deref());
            let page: Page = self.get(&query.on(path_of(kind))).await?;
            // Later pages may include newer events; the first page may miss them.
            if go_on.is_none() {
                list.newest = page.newest;
            }
            list.items.extend(page.items);
            match page.go_on {
                Some(more) => go_on = Some(more),
                None => return Ok(list),
            }
        }
    }

    /// The number of the newest event.
    pub(crate) async fn newest(&self) -> Result<u64, RequestError> {
        self.first(Kind::Queue).await.map(|page| page.newest)
    }

    /// Whether there is any object of a kind.
    pub(crate) async fn has_any(&self, kind: Kind) -> Result<bool, RequestError> {
        self.first(kind).await.map(|page| !page.items.is_empty())
    }

    async fn first(&self, kind: Kind) -> Result<Page, RequestError> {
        self.get(&Query::default().with("limit", 1).on(path_of(kind))).await
    }

    /// One object by its full name.
    pub(crate) async fn one(&self, kind: Kind, name: &str) -> Result<Value, RequestError> {
        self.get(&object_path(kind, name)).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        sent: &Payload<'_>,
        accept: &'static str,
    ) -> Result<Response<Incoming>, RequestError> {
        let mut request = Request::builder().method(method).uri(path).header(ACCEPT, accept);
        let shown = match &self.credential {
            Credential::None => None,
            Credential::Token(token) => Some(token.clone()),
            Credential::Owner(data) => owner_credential::token_for(data, self.url())
                .and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok()),
        };
        if let Some(shown) = shown {
            request = request.header(AUTHORIZATION, shown);
        }
        if let Some(key) = sent.key {
            request = request.header("idempotency-key", key);
        }
        let mut body = Bytes::new();
        if let Some((kind, text)) = sent.body {
            request = request.header(CONTENT_TYPE, kind);
            body = Bytes::copy_from_slice(text.as_bytes());
        }
        let wrong = |error: hyper::http::Error| {
            RequestError::Malformed(self.url().to_owned(), error.to_string())
        };
        let answer = self.wire.send(request.body(Full::new(body)).map_err(wrong)?).await?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body = self.body(answer).await.unwrap_or_default();
        Err(RequestError::Refused(Refusal::read(status.as_u16(), &body)))
    }

    async fn body(&self, answer: Response<Incoming>) -> Result<Bytes, RequestError> {
        let read = timeout(BODY_TIMEOUT, answer.into_body().collect()).await;
        let read = read.map_err(|_| RequestError::TimedOut(self.url().to_owned()))?;
        let lost =
            |error: hyper::Error| RequestError::Lost(self.url().to_owned(), error.to_string());
        Ok(read.map_err(lost)?.to_bytes())
    }

    async fn read<T: DeserializeOwned>(
        &self,
        answer: Response<Incoming>,
    ) -> Result<T, RequestError> {
        let body = self.body(answer).await?;
        self.parse(&body)
    }

    /// Parses an answer in JSON.
    pub(crate) fn parse<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, RequestError> {
        let odd = |error: serde_json::Error| {
            RequestError::Malformed(self.url().to_owned(), error.to_string())
        };
        serde_json::from_slice(body).map_err(odd)
    }
}

/// The path of one object.
pub(crate) fn object_path(kind: Kind, name: &str) -> String {
    match kind {
        Kind::Gang => gang_path(name, ""),
        _ => format!("{}/{}", path_of(kind), encode(name)),
    }
}

/// A unique idempotency key.
pub(crate) fn key() -> String {
    use ring::rand::{SecureRandom, SystemRandom};
    let mut bytes = [0; 16];
    // Without randomness, time and process id are the best available.
    if SystemRandom::new().fill(&mut bytes).is_err() {
        let nanos = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        bytes = (nanos ^ u128::from(std::process::id())).to_be_bytes();
    }
    format!("muster-{:032x}", u128::from_be_bytes(bytes))
}
