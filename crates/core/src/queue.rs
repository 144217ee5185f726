//! Queues: tenants' places in a tree, each with its share and its limit.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::QueueIdx;
use crate::resource::{Amounts, NamedAmounts};
use crate::time::Span;

/// Amounts a queue is promised or held to: GPUs apart, in thousandths of a device.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Quota {
    /// Everything but GPUs, in base units.
    #[serde(default)]
    pub amounts: NamedAmounts,
    /// GPUs of every vendor and model together, in thousandths of a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_milli: Option<u64>,
}

/// A queue as written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QueueSpec {
    /// Its name, unique in the tree.
    pub name: Arc<str>,
    /// The queue above it; none for a queue at the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Arc<str>>,
    /// Its part of what is shared among its siblings.
    #[serde(default = "one")]
    pub weight: u32,
    /// What it can count on.
    #[serde(default)]
    pub guaranteed: Quota,
    /// What it never exceeds.
    #[serde(default)]
    pub limit: Quota,
    /// What one user never exceeds within it and the queues below it.
    #[serde(default)]
    pub user_limit: Quota,
    /// How long it takes until use counts half; that of the queue above when absent, and a day at the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_life: Option<Span>,
    /// Tiers it may buy from; every tier when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<Arc<str>>,
}

fn one() -> u32 {
    1
}

impl QueueSpec {
    /// A queue at the top with no guarantee and no limit.
    pub fn open(name: &str) -> Self {
        Self {
            name: name.into(),
            parent: None,
            weight: 1,
            guaranteed: Quota::default(),
            limit: Quota::default(),
            user_limit: Quota::default(),
            half_life: None,
            tiers: Vec::new(),
        }
    }
}

/// What a queue and everything below it holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Everything but GPUs.
    pub amounts: Amounts,
    /// GPUs, in thousandths of a device.
    pub gpu_milli: u64,
}

/// A queue in the World.
#[derive(Clone, Debug)]
pub struct Queue {
    /// As written.
    pub spec: QueueSpec,
    /// The queue above it.
    pub parent: Option<QueueIdx>,
    /// Its limit, resource by resource; absent means unlimited.
    pub limit: BTreeMap<crate::id::ResourceIdx, u64>,
    /// What its gangs, and those of the queues below it, hold: running, admitted and reserved.
    pub usage: Usage,
}
