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

use crate::constraints::tokens::Tokens;
use crate::constraints::volumes::attach_limits::Limits;
use crate::constraints::volumes::index::VolumeIndex;

/// What is known of ties between gangs.
#[derive(Debug, Default)]
pub(crate) struct ConstraintIndex {
    pub(crate) tokens: Tokens,
    /// Gangs that wait, and whose ties may come to something else when somebody else moves.
    pub(crate) minding: BTreeSet<Arc<str>>,
    /// Whether somebody has moved.
    pub(crate) stirred: bool,
    pub(crate) disks: VolumeIndex,
    pub(crate) limits: Limits,
    /// Gangs with volumes that are looked for or counted.
    pub(crate) volumes: BTreeSet<Arc<str>>,
    /// Those of them that had seats when nodes were last told what they have.
    pub(crate) seated: BTreeSet<Arc<str>>,
    /// Whether nodes must be told again.
    pub(crate) recount: bool,
}

impl ConstraintIndex {
    /// Somebody has come, gone or changed: whoever has ties is looked at again.
    pub(crate) fn stir(&mut self) {
        self.stirred = true;
    }

    /// Gangs to look at again, once.
    pub(crate) fn disturbed(&mut self) -> Vec<Arc<str>> {
        match std::mem::take(&mut self.stirred) {
            true => self.minding.iter().cloned().collect(),
            false => Vec::new(),
        }
    }

    /// A gang is over.
    pub(crate) fn forget(&mut self, gang: &str) {
        self.minding.remove(gang);
        self.volumes.remove(gang);
        self.tokens.forget(gang);
    }

    /// What every node has of each token.
    pub(crate) fn on_every_node(&self) -> muster_core::resource::NamedAmounts {
        self.tokens.on_every_node()
    }

    /// What members of a gang need of their node besides room, if anything.
    pub(crate) fn in_words(&self, gang: &str) -> Option<String> {
        let needs = self.tokens.in_words(gang);
        (!needs.is_empty()).then(|| format!("members need {}", needs.join(", ")))
    }
}
