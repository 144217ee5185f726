//! Parses kinds and names as people type them.

use clap::ValueEnum;
use muster_server::Kind;

use crate::client::connection::address::Query;
use crate::client::connection::api::Api;
use crate::client::connection::error::RequestError;
use crate::client::follow::view::name_of;

/// A kind of object, by any of its names: plural, singular, and the short name that kubectl uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum KindArg {
    /// Members that start together
    #[value(name = "gangs", aliases = ["gang", "gg", "jobs", "job"])]
    Gangs,
    /// Tenants' shares of the capacity
    #[value(name = "queues", aliases = ["queue", "mq"])]
    Queues,
    /// Sources of nodes
    #[value(name = "pools", aliases = ["pool", "mpool"])]
    Pools,
    /// Machines
    #[value(name = "nodes", aliases = ["node", "no"])]
    Nodes,
    /// Nodes requested together for a gang
    #[value(name = "orders", aliases = ["order", "mo"])]
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

/// The singular name of a kind.
pub(crate) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Gang => "gang",
        Kind::Queue => "queue",
        Kind::Pool => "pool",
        Kind::Node => "node",
        Kind::Order => "order",
    }
}

/// The full name of an object. A gang may be given as `namespace/name`.
pub(crate) fn full_name(api: &Api, kind: Kind, namespace: Option<&str>, name: &str) -> String {
    if kind != Kind::Gang || name.contains('/') {
        return name.to_owned();
    }
    let namespace = namespace.or(api.namespace.as_deref()).unwrap_or("default");
    format!("{namespace}/{name}")
}

/// Adds the namespaces that have a gang of that name to the error that the gang does not exist.
pub(crate) async fn with_other_namespaces(
    api: &Api,
    name: &str,
    error: RequestError,
) -> anyhow::Error {
    if !error.is_not_found() {
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
