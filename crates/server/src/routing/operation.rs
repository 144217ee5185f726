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

use crate::auth::access::Who;
use crate::config::Server;
use crate::error::Failure;
use crate::handlers::query::{Nothing, query};
use crate::routing::middleware::guard;

/// Makes a type's schema.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One thing that can be asked.
pub(crate) struct Operation {
    pub(crate) path: &'static str,
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) rules: Rules,
    pub(crate) query: SchemaOf,
    pub(crate) takes: Option<Takes>,
    pub(crate) answers: Answers,
    route: MethodRouter<Arc<Server>>,
}

/// What is held against every request before its handler sees it.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// What it is called, in the document and in the audit log.
    pub(crate) id: &'static str,
    pub(crate) method: Method,
    pub(crate) who: Who,
    /// Whether there is a body to read.
    pub(crate) body: bool,
    /// Whether it changes nothing, whatever its method.
    pub(crate) question: bool,
    /// What the answer is a stream of, if it is one.
    pub(crate) stream: Option<Stream>,
    /// Refuses a query that the handler would not understand.
    pub(crate) check: fn(&Uri) -> Result<(), Failure>,
}

/// What is streamed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stream {
    Events,
    Logs,
}

/// What a body is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Takes {
    Manifests,
    Json(SchemaOf),
}

/// What an answer is, when all is well.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answers {
    Nothing,
    Json(SchemaOf),
    /// Text of one of these types.
    Text(&'static [&'static str]),
}

fn check<T: DeserializeOwned>(uri: &Uri) -> Result<(), Failure> {
    query::<T>(uri).map(drop)
}

fn new<H: Handler<T, Arc<Server>>, T: 'static>(
    (method, filter): (Method, MethodFilter),
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    handler: H,
) -> Operation {
    let who = if method == Method::GET { Who::Viewer } else { Who::User };
    let rules = Rules {
        id,
        method,
        who,
        body: false,
        question: false,
        stream: None,
        check: check::<Nothing>,
    };
    Operation {
        path,
        id,
        summary,
        rules,
        query: Nothing::json_schema,
        takes: None,
        answers: Answers::Nothing,
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
    pub(crate) fn is_question(&self, uri: &Uri) -> bool {
        let dry = |query: &str| query.split('&').any(|one| one == "dryRun=true");
        self.question || uri.query().is_some_and(dry)
    }
}

impl Operation {
    /// It changes nothing, though it has a body.
    pub(crate) fn question(mut self) -> Self {
        self.rules.question = true;
        self
    }

    /// Who may ask for it, if not everybody who is known looks and everybody but viewers changes.
    pub(crate) fn who(mut self, who: Who) -> Self {
        self.rules.who = who;
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
        self.takes = Some(Takes::Manifests);
        self.rules.body = true;
        self
    }

    /// Its body is this, in JSON.
    pub(crate) fn takes<T: JsonSchema>(mut self) -> Self {
        self.takes = Some(Takes::Json(SchemaGenerator::subschema_for::<T>));
        self.rules.body = true;
        self
    }

    /// Its answer is this, in JSON.
    pub(crate) fn answers<T: JsonSchema>(mut self) -> Self {
        self.answers = Answers::Json(SchemaGenerator::subschema_for::<T>);
        self
    }

    /// Its answer is text.
    pub(crate) fn text(mut self, kinds: &'static [&'static str]) -> Self {
        self.answers = Answers::Text(kinds);
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
        let guard = from_fn_with_state((server.clone(), self.rules), guard);
        router.route(self.path, self.route.route_layer(guard))
    }
}
