//! Generates the OpenAPI document from the list of operations and their types.
//!
//! It describes what holds for every host. Objects are described by their envelope only: `spec` is what the manifests
//! say, and `status` may grow.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::auth::access::RequiredRole;
use crate::error::ErrorBody;
use crate::handlers::events::MOST;
use crate::idempotency::replay;
use crate::openapi::schemas::manifests;
use crate::routing::operation::{Operation, RequestBody, ResponseBody, Stream};
use crate::routing::routes::operations;
use crate::{FeedEvent, LogPart};

/// The document as it is served and committed.
pub(crate) fn text() -> String {
    let mut text = format!("{:#}", openapi());
    text.push('\n');
    text
}

/// The OpenAPI document.
pub fn openapi() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut types = settings.into_generator();
    let mut paths = Map::new();
    for operation in operations() {
        let method = operation.rules.method.as_str().to_ascii_lowercase();
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[method] = describe(&operation, &mut types);
    }
    let failed = types.subschema_for::<ErrorBody>();
    let responses: Map<_, _> = ERRORS
        .iter()
        .map(|(_, name, description)| {
            let content = json!({ "application/json": { "schema": failed } });
            ((*name).to_owned(), json!({ "description": description, "content": content }))
        })
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Muster",
            "version": "v1",
            "description": "Gangs, queues, pools, nodes and orders; queries about them; and the feed of their changes.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": types.take_definitions(true),
            "responses": responses,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

/// Every error response: status, name in the document, and cause.
const ERRORS: [(u16, &str, &str); 14] = [
    (400, "BadRequest", "The request cannot be parsed."),
    (401, "Unauthorized", "The credential is missing or unknown."),
    (403, "Forbidden", "The caller may not do this."),
    (404, "NotFound", "No such object."),
    (405, "MethodNotAllowed", "The path exists, but not with this method."),
    (408, "TooSlow", "The body did not arrive in time."),
    (409, "Conflict", "It conflicts with the present state."),
    (413, "TooLarge", "The body is too large."),
    (415, "UnsupportedMediaType", "The body's media type is not supported."),
    (422, "Invalid", "The request was parsed, but is not valid. Manifests come with findings."),
    (429, "TooMany", "The caller has too many requests, streams or changes at once."),
    (500, "Internal", "A bug. Details are in the server's log."),
    (501, "Unsupported", "This host does not support the operation."),
    (503, "Unavailable", "Not possible now; a retry may succeed."),
];

fn describe(operation: &Operation, types: &mut SchemaGenerator) -> Value {
    let rules = &operation.rules;
    let mut told = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": [tag(operation.path)],
        "parameters": parameters(operation, types),
        "responses": responses(operation, types),
        "security": if rules.role == RequiredRole::Anyone { json!([]) } else { json!([{ "token": [] }]) },
    });
    if let Some(takes) = operation.takes {
        told["requestBody"] = json!({ "required": true, "content": body(takes, types) });
    }
    told
}

fn tag(path: &str) -> &str {
    match path.strip_prefix("/v1/").and_then(|rest| rest.split('/').next()) {
        Some("namespaces") => "gangs",
        Some(first @ ("gangs" | "queues" | "pools" | "nodes" | "orders")) => first,
        Some(_) => "all",
        None => "server",
    }
}

fn body(takes: RequestBody, types: &mut SchemaGenerator) -> Value {
    match takes {
        RequestBody::Json(schema) => json!({ "application/json": { "schema": schema(types) } }),
        RequestBody::Manifests => {
            let schema = manifests(types);
            json!({ "application/yaml": { "schema": schema }, "application/json": { "schema": schema } })
        }
    }
}

fn parameters(operation: &Operation, types: &mut SchemaGenerator) -> Vec<Value> {
    let mut all = Vec::new();
    for name in operation.path.split('/').filter_map(|part| part.strip_prefix('{')) {
        let name = name.trim_end_matches('}');
        let most = if name == "namespace" { 63 } else { 253 };
        let pattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$";
        let schema =
            json!({ "type": "string", "minLength": 1, "maxLength": most, "pattern": pattern });
        all.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }
    let query = Value::from((operation.query)(types));
    let required = |name: &str| {
        let names = query.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|one| one == name))
    };
    for (name, schema) in query.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let mut schema = without_null(schema.clone());
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        all.push(json!({
            "name": name, "in": "query", "required": required(name), "schema": schema,
            "description": description,
        }));
    }
    if !operation.rules.method.is_safe() {
        let pattern = format!("^[!-~]{{1,{}}}$", replay::LONGEST);
        all.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "schema": { "type": "string", "pattern": pattern },
            "description": "A request that is repeated with the same key is executed once; its answer is replayed for a day.",
        }));
    }
    if operation.rules.stream == Some(Stream::Events) {
        all.push(json!({
            "name": "Last-Event-ID", "in": "header", "required": false,
            "schema": { "type": "integer", "minimum": 0, "maximum": MOST },
            "description": "The last event that was read; the stream continues after it.",
        }));
    }
    all
}

/// Removes null from an optional parameter: a parameter may be absent, but never null.
fn without_null(mut schema: Value) -> Value {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [single] = types.as_slice() {
            schema["type"] = single.clone();
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(any)) = schema.get_mut("anyOf") {
        any.retain(|one| one.get("type").is_none_or(|kind| kind != "null"));
        if let [single] = any.as_slice()
            && let Some(single) = single.as_object().cloned()
            && let Some(schema) = schema.as_object_mut()
        {
            schema.remove("anyOf");
            schema.extend(single);
        }
    }
    schema
}

fn responses(operation: &Operation, types: &mut SchemaGenerator) -> Value {
    let rules = &operation.rules;
    let mut all = Map::new();
    let good = match operation.answers {
        ResponseBody::Empty => json!({ "description": "Done." }),
        ResponseBody::Json(schema) => {
            let content = json!({ "application/json": { "schema": schema(types) } });
            json!({ "description": operation.summary, "content": content })
        }
        ResponseBody::Text(kinds) => {
            let schema = match rules.stream {
                Some(Stream::Events) => event(types),
                Some(Stream::Logs) => {
                    json!({ "type": "string", "x-line": types.subschema_for::<LogPart>() })
                }
                None => json!({ "type": "string" }),
            };
            let contents = kinds.iter().map(|kind| (bare(kind), json!({ "schema": schema })));
            json!({ "description": operation.summary, "content": contents.collect::<Map<_, _>>() })
        }
    };
    let code = if matches!(operation.answers, ResponseBody::Empty) { "204" } else { "200" };
    all.insert(code.into(), good);
    let can = |code| match code {
        401 | 403 => rules.role != RequiredRole::Anyone,
        404 => operation.path.starts_with("/v1/"),
        408 | 413 | 415 => rules.body,
        409 | 422 | 501 => operation.path.starts_with("/v1/"),
        429 => rules.stream.is_some(),
        405 => false,
        _ => true,
    };
    for (code, name, _) in ERRORS.iter().filter(|(code, _, _)| can(*code)) {
        let reference = format!("#/components/responses/{name}");
        all.insert(code.to_string(), json!({ "$ref": reference }));
    }
    all.into()
}

/// One server-sent event, as OpenAPI 3.2 describes them.
fn event(types: &mut SchemaGenerator) -> Value {
    let gap = json!({
        "type": "object",
        "required": ["type", "seq"],
        "properties": { "type": { "const": "gap" }, "seq": { "type": "integer", "minimum": 0 } },
    });
    let data = json!({ "anyOf": [types.subschema_for::<FeedEvent>(), gap] });
    json!({
        "type": "object",
        "properties": {
            "event": { "enum": ["set", "gone", "said", "gap"] },
            "id": { "type": "string", "pattern": "^[0-9]+$" },
            "retry": { "type": ["integer", "string"] },
            "data": { "type": "string", "contentMediaType": "application/json", "contentSchema": data },
        },
    })
}

/// A media type without its parameters.
fn bare(kind: &str) -> String {
    kind.split(';').next().unwrap_or(kind).to_owned()
}

/// An object of any kind, by its envelope.
pub(crate) struct Object;

impl JsonSchema for Object {
    fn schema_name() -> Cow<'static, str> {
        "Object".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An object as on Kubernetes: the desired state in `spec`, the actual state in `status`.",
            "type": "object",
            "required": ["kind", "metadata"],
            "properties": {
                "apiVersion": { "type": "string" },
                "kind": { "enum": ["Gang", "Queue", "Pool", "Node", "Order"] },
                "metadata": {
                    "type": "object",
                    "required": ["name"],
                    "properties": { "name": { "type": "string" }, "namespace": { "type": "string" } },
                },
                "spec": { "type": "object" },
                "status": { "type": "object" },
            },
        })
    }
}

/// A page of a list.
pub(crate) struct PageOf;

impl JsonSchema for PageOf {
    fn schema_name() -> Cow<'static, str> {
        "Page".into()
    }
    fn json_schema(types: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A page of a list.",
            "type": "object",
            "required": ["items", "newest"],
            "properties": {
                "items": { "type": "array", "items": types.subschema_for::<Object>() },
                "continue": { "type": "string", "description": "The position of the next page; absent on the last page." },
                "newest": { "type": "integer", "minimum": 0, "description": "The newest event that is included; follow the events after it." },
            },
        })
    }
}

/// This document.
pub(crate) struct Document;

impl JsonSchema for Document {
    fn schema_name() -> Cow<'static, str> {
        "Document".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "required": ["openapi", "paths"] })
    }
}
