//! The identity of a gang: what makes its pods one gang, the name that follows from it, and the gang that is built from it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use muster_api::dialects::{Dialect, GroupRef};
use muster_api::spell_name;
use muster_api::workloads::WorkloadKind;
use muster_core::gang::GangSpec;

use crate::cache::store::Key;
use crate::constraints::pod_constraints::PodConstraints;

/// The suffix of names of gangs that are built from ProvisioningRequests.
pub(crate) const REQUEST_SUFFIX: &str = ".request";

/// Why pods are one gang.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum GangSource {
    /// They name a Gang, which may or may not be there.
    Gang { namespace: Arc<str>, name: Arc<str> },
    /// They name a group of another dialect.
    Group(GroupRef),
    /// They name groups that start together or not at all: in order, each once.
    Merged(Arc<[GroupRef]>),
    /// One workload made them.
    Owner {
        kind: WorkloadKind,
        namespace: Arc<str>,
        /// The gang's name among those of that kind.
        gang: Arc<str>,
        /// The workload.
        owner: Arc<str>,
        /// The workload that has the templates.
        templates: (WorkloadKind, Arc<str>),
    },
    /// There are none yet: a ProvisioningRequest asks for their room.
    Request { namespace: Arc<str>, name: Arc<str> },
    /// There is only one.
    Pod { namespace: Arc<str>, name: Arc<str> },
}

impl GangSource {
    /// What the gang is called: as the Gang, or else so that no two kinds of origin can meet. What other systems take for
    /// a name need not be one here, and the gang's object must have one.
    pub(crate) fn gang_name(&self) -> Arc<str> {
        let (namespace, name): (&str, String) = match self {
            Self::Gang { namespace, name } => (namespace, name.to_string()),
            Self::Group(group) => {
                let name = group.name.replace('/', ".");
                (&group.namespace, format!("{name}.{}", dialect_name(group.dialect)))
            }
            // Groups that list others are another gang, also where the first of them is the same. The groups are of
            // namespaces that need not trust each other: no list can be found that has the name of another.
            Self::Merged(groups) => {
                let first = groups.first().expect("some start together");
                let stem: String = first.name.chars().take(STEM).collect();
                (
                    &first.namespace,
                    format!("{stem}.{}{MERGED_SUFFIX}", digest_of(&in_a_row(groups))),
                )
            }
            Self::Owner { kind, namespace, gang, .. } => {
                (namespace, format!("{gang}.{}", format!("{kind:?}").to_lowercase()))
            }
            // These two are objects, whose names are names.
            Self::Request { namespace, name } => {
                return format!("{namespace}/{name}{REQUEST_SUFFIX}").into();
            }
            Self::Pod { namespace, name } => return format!("{namespace}/{name}.pod").into(),
        };
        format!("{namespace}/{}", spell_name(&name)).into()
    }
}

/// How names of gangs end that are made of several groups. No Gang may be called so.
pub(crate) const MERGED_SUFFIX: &str = ".joined";

/// How much of a group's name is in the name of a gang of several, so that none of it is cut off.
const STEM: usize = 180;

/// Half of a SHA-256 in hexadecimal: two lists that have the same are not found by trying.
fn digest_of(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The full names of groups, one after another.
fn in_a_row(groups: &[GroupRef]) -> String {
    groups.iter().map(GroupRef::full_name).collect::<Vec<_>>().join("+")
}

fn dialect_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Muster => "gang",
        Dialect::Native => "podgroup",
        Dialect::Workload => "workload",
        Dialect::SchedulerPlugins => "scheduler-plugins",
        Dialect::Koordinator => "koordinator",
        Dialect::Volcano => "volcano",
        Dialect::KubeBatch => "kube-batch",
        Dialect::Kai => "kai",
    }
}

impl fmt::Display for GangSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gang { name, .. } => write!(f, "gang/{name}"),
            Self::Group(group) => write!(f, "{}/{}", dialect_name(group.dialect), group.name),
            Self::Merged(groups) => {
                let dialect = groups.first().map_or("", |first| dialect_name(first.dialect));
                write!(f, "{dialect}/{}", in_a_row(groups))
            }
            Self::Owner { kind, owner, .. } => write!(f, "{kind:?}/{owner}"),
            Self::Request { name, .. } => write!(f, "provisioningrequest/{name}"),
            Self::Pod { name, .. } => write!(f, "pod/{name}"),
        }
    }
}

/// A gang as it is built from its objects, with what the host needs to bind its pods.
#[derive(Debug)]
pub(crate) struct BuiltGang {
    /// What the planner gets.
    pub(crate) spec: GangSpec,
    /// The role of each pod, by index in the spec.
    pub(crate) pod_roles: BTreeMap<Key, u16>,
    /// The rank of each pod within its role.
    pub(crate) pod_ranks: BTreeMap<Key, u32>,
    /// The resolved constraints of each pod.
    pub(crate) pod_constraints: BTreeMap<Key, PodConstraints>,
    /// Why it fits nowhere now.
    pub(crate) wait_reason: Option<String>,
    /// Whether some of its pods do not exist yet and are built from a template.
    pub(crate) planned_from_template: bool,
    /// Members that it is sized for and that do not exist.
    pub(crate) missing_members: u32,
    /// How many members of each role its owner will create at most, where that is known.
    pub(crate) wanted_members: Vec<Option<u32>>,
    /// What it asks for that Muster does not support, and that it can do without.
    pub(crate) unsupported: Vec<Arc<str>>,
}
