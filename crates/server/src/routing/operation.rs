//! One thing that can be asked: its route, its rules, and what the OpenAPI document says of it.
//!
//! All three come from one value, so that no route is without rules, and none is missing from the document.

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

/// Makes a type's schema.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One thing that can be asked.
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

/// What is held against every request before its handler sees it.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// What it is called, in the document and in the audit log.
    pub(crate) id: &'static str,
    pub(crate) method: Method,
    pub(crate) role: RequiredRole,
    /// Whether there is a body to read.
    pub(crate) body: bool,
    /// Whether it changes nothing, whatever its method.
    pub(crate) read_only: bool,
    /// What the answer is a stream of, if it is one.
    pub(crate) stream: Option<Stream>,
    /// Refuses a query that the handler would not understand.
    pub(crate) check: fn(&Uri) -> Result<(), ApiError>,
}

/// What is streamed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stream {
    Events,
    Logs,
}

/// What a body is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestBody {
    Manifests,
    Json(SchemaOf),
}

/// What an answer is, when all is well.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ResponseBody {
    Empty,
    Json(SchemaOf),
    /// Text of one of these types.
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

/// Something to look at.
pub(crate) fn get<H: Handler<T, Arc<Server>>, T: 'static>(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    handler: H,
) -> Operation {
    new((Method::GET, MethodFilter::GET), path, id, summary, handler)
}

/// Something to do.
pub(crate) fn post<H: Handler<T, Arc<Server>>, T: 'static>(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    handler: H,
) -> Operation {
    new((Method::POST, MethodFilter::POST), path, id, summary, handler)
}

/// Something to remove.
pub(crate) fn delete<H: Handler<T, Arc<Server>>, T: 'static>(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    handler: H,
) -> Operation {
    new((Method::DELETE, MethodFilter::DELETE), path, id, summary, handler)
}

impl Rules {
    /// Whether a request changes nothing: what would come of it is asked.
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

    /// Who may ask for it, if not everybody who is known looks and everybody but viewers changes.
    pub(crate) fn role(mut self, role: RequiredRole) -> Self {
        self.rules.role = role;
        self
    }

    /// The parameters it knows.
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

    /// Its body is this, in JSON.
    pub(crate) fn takes<T: JsonSchema>(mut self) -> Self {
        self.takes = Some(RequestBody::Json(SchemaGenerator::subschema_for::<T>));
        self.rules.body = true;
        self
    }

    /// Its answer is this, in JSON.
    pub(crate) fn answers<T: JsonSchema>(mut self) -> Self {
        self.answers = ResponseBody::Json(SchemaGenerator::subschema_for::<T>);
        self
    }

    /// Its answer is text.
    pub(crate) fn text(mut self, kinds: &'static [&'static str]) -> Self {
        self.answers = ResponseBody::Text(kinds);
        self
    }

    /// Its answer is a stream.
    pub(crate) fn stream(mut self, of: Stream) -> Self {
        self.rules.stream = Some(of);
        self
    }

    /// Adds its route, with its rules before it.
    pub(crate) fn mount(
        self,
        router: Router<Arc<Server>>,
        server: &Arc<Server>,
    ) -> Router<Arc<Server>> {
        let guard = from_fn_with_state((server.clone(), self.rules), enforce_rules);
        router.route(self.path, self.route.route_layer(guard))
    }
}
