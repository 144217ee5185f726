//! What a pod insists on that the planner has no word for, put into words it has.
//!
//! Three kinds of words are enough. What at most so many pods may have of a node becomes a *token*: a resource that
//! every node has the same amount of (`tokens`), or as much as there is of it (`amounts`). What depends on who is where becomes a requirement on node labels
//! (`near`, `away`, `spread`, `volumes`), which is true for an instant: a gang that has such ties is gathered again
//! before it is admitted. And what cannot be said either way becomes a reason to wait, which its owner reads.
//!
//! What pods only wish (`wishes`) becomes preferences, which keep nobody waiting.
//!
//! Deliberately not here: devices by ResourceClaims.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::constraints::tokens::TokenRegistry;
use crate::constraints::volumes::attach_limits::AttachLimits;
use crate::constraints::volumes::index::VolumeIndex;

/// What is known of ties between gangs.
#[derive(Debug, Default)]
pub(crate) struct ConstraintIndex {
    pub(crate) tokens: TokenRegistry,
    /// Gangs that wait, and whose ties may come to something else when somebody else moves.
    pub(crate) watching: BTreeSet<Arc<str>>,
    /// Whether somebody has moved.
    pub(crate) is_invalidated: bool,
    pub(crate) volumes: VolumeIndex,
    pub(crate) attach_limits: AttachLimits,
    /// Gangs with volumes that are looked for or counted.
    pub(crate) gangs_with_volumes: BTreeSet<Arc<str>>,
    /// Those of them that had seats when nodes were last told what they have.
    pub(crate) seated: BTreeSet<Arc<str>>,
    /// Whether nodes must be told again.
    pub(crate) recount_nodes: bool,
}

impl ConstraintIndex {
    /// Somebody has come, gone or changed: whoever has ties is looked at again.
    pub(crate) fn invalidate(&mut self) {
        self.is_invalidated = true;
    }

    /// Gangs to look at again, once.
    pub(crate) fn take_invalidated(&mut self) -> Vec<Arc<str>> {
        match std::mem::take(&mut self.is_invalidated) {
            true => self.watching.iter().cloned().collect(),
            false => Vec::new(),
        }
    }

    /// A gang is over.
    pub(crate) fn forget(&mut self, gang: &str) {
        self.watching.remove(gang);
        self.gangs_with_volumes.remove(gang);
        self.tokens.forget(gang);
    }

    /// What every node has of each token.
    pub(crate) fn on_every_node(&self) -> muster_core::resource::NamedAmounts {
        self.tokens.on_every_node()
    }

    /// What members of a gang need of their node besides room, if anything.
    pub(crate) fn describe(&self, gang: &str) -> Option<String> {
        let needs = self.tokens.describe(gang);
        (!needs.is_empty()).then(|| format!("members need {}", needs.join(", ")))
    }
}
