//! One API operation: its route, its rules, and its description in the OpenAPI document.
//!
//! All three come from one value, so that every route has rules and is in the document.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::http::{Method, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;

use crate::auth::access::RequiredRole;
use crate::config::Server;
use crate::error::ApiError;
use crate::handlers::query::{NoParams, query};
use crate::routing::middleware::enforce_rules;

/// Generates the schema of a type.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One API operation.
pub(crate) struct Operation {
    pub(crate) path: &'static str,
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) rules: Rules,
    pub(crate) query: SchemaOf,
    pub(crate) takes: Option<RequestBody>,
    pub(crate) answers: ResponseBody,
    route: MethodRouter<Arc<Server>>,
}

/// Rules that every request is checked against before its handler runs.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// The operation's name, in the document and in the audit log.
    pub(crate) id: &'static str,
    pub(crate) method: Method,
    pub(crate) role: RequiredRole,
    /// Whether it has a body.
    pub(crate) body: bool,
    /// Whether it changes nothing, whatever its method.
    pub(crate) read_only: bool,
    /// The content of the response stream, if it is one.
    pub(crate) stream: Option<Stream>,
    /// Rejects a query that the handler could not parse.
    pub(crate) check: fn(&Uri) -> Result<(), ApiError>,
}

/// The content of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stream {
    Events,
    Logs,
}

/// The content of a request body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestBody {
    Manifests,
    Json(SchemaOf),
}

/// The content of a successful response.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ResponseBody {
    Empty,
    Json(SchemaOf),
    /// Text with one of these content types.
    Text(&'static [&'static str]),
}

fn check<T: DeserializeOwned>(uri: &Uri) -> Result<(), ApiError> {
    query::<T>(uri).map(drop)
}

fn new<H: Handler<T, Arc<Server>>, T: 'static>(
    (method, filter): (Method, MethodFilter),
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    handler: H,
) -> Operation {
    let role = if method == Method::GET { RequiredRole::Viewer } else { RequiredRole::User };
    let rules = Rules {
        id,
        method,
        role,
        body: false,
        read_only: false,
        stream: None,
        check: check::<NoParams>,
    };
    Operation {
        path,
        id,
        summary,
        rules,
        query: NoParams::json_schema,
        takes: None,
        answers: ResponseBody::Empty,
        route: on(filter, handler),
    }
}

/// A `GET` operation.
pub(crate) fn get<H: Handler<T, Arc<Server>>, T: 'static>(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    handler: H,
) -> Operation {
    new((Method::GET, MethodFilter::GET), path, id, summary, handler)
}

/// A `POST` operation.
pub(crate) fn post<H: Handler<T, Arc<Server>>, T: 'static>(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    handler: H,
) -> Operation {
    new((Method::POST, MethodFilter::POST), path, id, summary, handler)
}

/// A `DELETE` operation.
pub(crate) fn delete<H: Handler<T, Arc<Server>>, T: 'static>(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    handler: H,
) -> Operation {
    new((Method::DELETE, MethodFilter::DELETE), path, id, summary, handler)
}

impl Rules {
    /// Whether a request changes nothing: the operation is read-only, or it is a dry run.
    pub(crate) fn is_read_only(&self, uri: &Uri) -> bool {
        let dry = |query: &str| query.split('&').any(|one| one == "dryRun=true");
        self.read_only || uri.query().is_some_and(dry)
    }
}

impl Operation {
    /// It changes nothing, though it has a body.
    pub(crate) fn read_only(mut self) -> Self {
        self.rules.read_only = true;
        self
    }

    /// The required role; by default viewers may read, and all others may change.
    pub(crate) fn role(mut self, role: RequiredRole) -> Self {
        self.rules.role = role;
        self
    }

    /// Its query parameters.
    pub(crate) fn query<T: DeserializeOwned + JsonSchema>(mut self) -> Self {
        self.query = T::json_schema;
        self.rules.check = check::<T>;
        self
    }

    /// Its body is manifests.
    pub(crate) fn manifests(mut self) -> Self {
        self.takes = Some(RequestBody::Manifests);
        self.rules.body = true;
        self
    }

    /// Its body is this type, in JSON.
    pub(crate) fn takes<T: JsonSchema>(mut self) -> Self {
        self.takes = Some(RequestBody::Json(SchemaGenerator::subschema_for::<T>));
        self.rules.body = true;
        self
    }

    /// Its response is this type, in JSON.
    pub(crate) fn answers<T: JsonSchema>(mut self) -> Self {
        self.answers = ResponseBody::Json(SchemaGenerator::subschema_for::<T>);
        self
    }

    /// Its response is text.
    pub(crate) fn text(mut self, kinds: &'static [&'static str]) -> Self {
        self.answers = ResponseBody::Text(kinds);
        self
    }

    /// Its response is a stream.
    pub(crate) fn stream(mut self, of: Stream) -> Self {
        self.rules.stream = Some(of);
        self
    }

    /// Adds its route, with its rules.
    pub(crate) fn mount(
        self,
        router: Router<Arc<Server>>,
        server: &Arc<Server>,
    ) -> Router<Arc<Server>> {
        let guard = from_fn_with_state((server.clone(), self.rules), enforce_rules);
        router.route(self.path, self.route.route_layer(guard))
    }
}
