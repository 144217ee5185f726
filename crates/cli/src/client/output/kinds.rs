//! Kinds and names as people type them.

use clap::ValueEnum;
use muster_server::Kind;

use crate::client::connection::address::Query;
use crate::client::connection::api::Api;
use crate::client::connection::error::AskError;
use crate::client::follow::view::name_of;

/// A kind of objects, by any of its names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum KindArg {
    /// Members that start together
    #[value(name = "gangs", aliases = ["gang", "g", "jobs", "job"])]
    Gangs,
    /// Tenants' places
    #[value(name = "queues", aliases = ["queue", "q"])]
    Queues,
    /// Supplies of nodes
    #[value(name = "pools", aliases = ["pool", "p"])]
    Pools,
    /// Machines
    #[value(name = "nodes", aliases = ["node", "no"])]
    Nodes,
    /// Nodes that were asked for together
    #[value(name = "orders", aliases = ["order", "o"])]
    Orders,
}

impl KindArg {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Gangs => Kind::Gang,
            Self::Queues => Kind::Queue,
            Self::Pools => Kind::Pool,
            Self::Nodes => Kind::Node,
            Self::Orders => Kind::Order,
        }
    }
}

/// A kind in a sentence.
pub(crate) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Gang => "gang",
        Kind::Queue => "queue",
        Kind::Pool => "pool",
        Kind::Node => "node",
        Kind::Order => "order",
    }
}

/// The full name of an object somebody means. A gang may be given as `namespace/name`.
pub(crate) fn full(api: &Api, kind: Kind, namespace: Option<&str>, name: &str) -> String {
    if kind != Kind::Gang || name.contains('/') {
        return name.to_owned();
    }
    let namespace = namespace.or(api.namespace.as_deref()).unwrap_or("default");
    format!("{namespace}/{name}")
}

/// Says in which namespaces there is a gang of that name, when there is none where it was looked for.
pub(crate) async fn elsewhere(api: &Api, name: &str, error: AskError) -> anyhow::Error {
    if !error.is_missing() {
        return error.into();
    }
    let short = name.split_once('/').map_or(name, |(_, short)| short);
    let all = api.list(Kind::Gang, &Query::default()).await.unwrap_or_default();
    let names = all.items.iter().map(|gang| name_of(Kind::Gang, gang));
    let same: Vec<_> = names.filter(|full| full.ends_with(&format!("/{short}"))).collect();
    match same.is_empty() || same.iter().any(|full| full == name) {
        true => error.into(),
        false => anyhow::anyhow!("{error}; there is {}", same.join(", ")),
    }
}
