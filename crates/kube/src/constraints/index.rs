//! What is known of constraints across gangs: tokens in use, volumes, attach limits, and the gangs to resolve again
//! when other pods or nodes change.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::constraints::tokens::TokenRegistry;
use crate::constraints::volumes::attach_limits::AttachLimits;
use crate::constraints::volumes::index::VolumeIndex;

/// What is known of constraints across gangs.
#[derive(Debug, Default)]
pub(crate) struct ConstraintIndex {
    pub(crate) tokens: TokenRegistry,
    /// Waiting gangs whose constraints may resolve differently when other pods or nodes change.
    pub(crate) watching: BTreeSet<Arc<str>>,
    /// Whether pods or nodes have changed since those gangs were last resolved.
    pub(crate) is_invalidated: bool,
    pub(crate) volumes: VolumeIndex,
    pub(crate) attach_limits: AttachLimits,
    /// Gangs with volumes that are to be found or counted.
    pub(crate) gangs_with_volumes: BTreeSet<Arc<str>>,
    /// Those of them that had seats when the tokens of nodes were last computed.
    pub(crate) seated: BTreeSet<Arc<str>>,
    /// Whether the tokens of nodes must be computed again.
    pub(crate) recount_nodes: bool,
}

impl ConstraintIndex {
    /// A pod, node or volume has appeared, changed or gone: gangs with constraints are resolved again.
    pub(crate) fn invalidate(&mut self) {
        self.is_invalidated = true;
    }

    /// Gangs to resolve again; each invalidation returns them once.
    pub(crate) fn take_invalidated(&mut self) -> Vec<Arc<str>> {
        match std::mem::take(&mut self.is_invalidated) {
            true => self.watching.iter().cloned().collect(),
            false => Vec::new(),
        }
    }

    /// Removes a gang that is over.
    pub(crate) fn forget(&mut self, gang: &str) {
        self.watching.remove(gang);
        self.gangs_with_volumes.remove(gang);
        self.tokens.forget(gang);
    }

    /// The amount of each token on a node about which nothing else is known.
    pub(crate) fn on_every_node(&self) -> muster_core::resource::NamedAmounts {
        self.tokens.on_every_node()
    }

    /// What members of a gang need of their node besides room, for people; `None` if nothing.
    pub(crate) fn describe(&self, gang: &str) -> Option<String> {
        let needs = self.tokens.describe(gang);
        (!needs.is_empty()).then(|| format!("members need {}", needs.join(", ")))
    }
}
