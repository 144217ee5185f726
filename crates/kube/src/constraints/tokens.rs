//! Tokens: what only so many pods can have of one node, as a resource. Of most of them every node has as much; what nodes
//! have more or less of is counted for each (`amounts`).
//!
//! The planner never forgets the name of a resource, and ports and selectors come and go with every job. So tokens are
//! numbered, and a number that nobody uses any more is given to the next who needs one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use muster_core::resource::{NamedAmounts, TOKEN};

use crate::constraints::volumes::attach_limits::UNITS_PER_ATTACHMENT;
use crate::constraints::volumes::volume::ClaimRequirements;

/// What a node has of each token. A member that wants the node for itself takes all of it, one that only must not meet
/// such a member takes one, and where `n` may share a node each takes the `n`th part, which is exact up to a thousand.
pub(crate) const WHOLE: u64 = 1_000_000;

/// What a token stands for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum TokenKind {
    /// A port of the node, on one of its addresses or on all of them.
    HostPort { protocol: String, port: u16, ip: Option<String> },
    /// Being the only one of these pods.
    AntiAffinity(String),
    /// A gang's evenness over nodes, by one of its rules.
    TopologySpread { gang: Arc<str>, rule: String },
    /// A volume that somebody has made on the node: a node has as many as it has.
    StaticVolume(ClaimRequirements),
    /// Being attached to the node by this driver: a node takes so many.
    VolumeAttachment(Arc<str>),
    /// The same for a gang whose members share volumes, besides these.
    SharedVolumeAttachment { gang: Arc<str>, driver: Arc<str> },
}

impl fmt::Display for TokenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostPort { protocol, port, ip: None } => {
                write!(f, "the node's port {port}/{protocol}")
            }
            Self::HostPort { protocol, port, ip: Some(ip) } => {
                write!(f, "the node's port {ip}:{port}/{protocol}")
            }
            Self::AntiAffinity(selector) => write!(f, "a node without {selector}"),
            Self::TopologySpread { rule, .. } => write!(f, "a node with few {rule}"),
            Self::StaticVolume(requirements) => write!(f, "{requirements} on the node"),
            Self::VolumeAttachment(driver) | Self::SharedVolumeAttachment { driver, .. } => {
                write!(f, "a node that can attach their volumes of {driver}")
            }
        }
    }
}

/// Which number stands for what, and who uses it.
#[derive(Debug, Default)]
pub(crate) struct TokenRegistry {
    slots: Vec<Option<TokenKind>>,
    by_kind: BTreeMap<TokenKind, usize>,
    users: BTreeMap<Arc<str>, BTreeSet<usize>>,
    /// Whether nodes have other tokens than they were told.
    changed: bool,
}

impl TokenRegistry {
    /// The token that stands for something, if somebody uses it.
    pub(crate) fn name_of(&self, kind: &TokenKind) -> Option<Arc<str>> {
        self.by_kind.get(kind).map(|slot| name(*slot))
    }

    /// A gang uses these tokens from now on, besides those that it still asks for by name, and no others.
    pub(crate) fn set_used(
        &mut self,
        gang: &Arc<str>,
        kinds: impl IntoIterator<Item = TokenKind>,
        asked: &NamedAmounts,
    ) {
        let mut used: BTreeSet<usize> = kinds.into_iter().map(|kind| self.slot(kind)).collect();
        let before = self.users.remove(gang).unwrap_or_default();
        used.extend(before.iter().filter(|slot| asked.contains_key(&name(**slot))));
        if !used.is_empty() {
            self.users.insert(gang.clone(), used);
        }
        self.free_unused(before);
    }

    /// A gang uses nothing any more.
    pub(crate) fn forget(&mut self, gang: &str) {
        if let Some(before) = self.users.remove(gang) {
            self.free_unused(before);
        }
    }

    fn slot(&mut self, kind: TokenKind) -> usize {
        if let Some(slot) = self.by_kind.get(&kind) {
            return *slot;
        }
        self.changed = true;
        let slot = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.by_kind.insert(kind.clone(), slot);
        self.slots[slot] = Some(kind);
        slot
    }

    /// Drops those of these numbers that nobody uses.
    fn free_unused(&mut self, slots: BTreeSet<usize>) {
        for slot in slots {
            if !self.users.values().any(|slots| slots.contains(&slot))
                && let Some(kind) = self.slots[slot].take()
            {
                self.by_kind.remove(&kind);
                self.changed = true;
            }
        }
    }

    /// Whether nodes must be told anew, once.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// What a node has of which nothing is known yet. Nobody has made a volume on it.
    pub(crate) fn on_every_node(&self) -> NamedAmounts {
        let others =
            self.by_kind.iter().filter(|(of, _)| !matches!(of, TokenKind::StaticVolume(_)));
        let amount = |of: &TokenKind| match of {
            TokenKind::SharedVolumeAttachment { .. } => WHOLE * UNITS_PER_ATTACHMENT,
            _ => WHOLE,
        };
        others.map(|(of, slot)| (name(*slot), amount(of))).collect()
    }

    /// Tokens of which nodes do not have the same amount.
    pub(crate) fn counted_per_node(&self) -> impl Iterator<Item = (Arc<str>, &TokenKind)> {
        let is_counted_per_node = |kind: &TokenKind| match kind {
            TokenKind::StaticVolume(_)
            | TokenKind::VolumeAttachment(_)
            | TokenKind::SharedVolumeAttachment { .. } => true,
            TokenKind::HostPort { .. }
            | TokenKind::AntiAffinity(_)
            | TokenKind::TopologySpread { .. } => false,
        };
        let counted = self.by_kind.iter().filter(move |(kind, _)| is_counted_per_node(kind));
        counted.map(|(kind, slot)| (name(*slot), kind))
    }

    /// Whether a gang uses the token that stands for something.
    pub(crate) fn is_used_by(&self, gang: &str, kind: &TokenKind) -> bool {
        let slot = self.by_kind.get(kind);
        slot.zip(self.users.get(gang)).is_some_and(|(slot, used)| used.contains(slot))
    }

    /// What a gang's tokens mean.
    pub(crate) fn describe(&self, gang: &str) -> Vec<String> {
        let slots = self.users.get(gang).into_iter().flatten();
        slots.filter_map(|slot| self.slots[*slot].as_ref().map(ToString::to_string)).collect()
    }
}

fn name(slot: usize) -> Arc<str> {
    format!("{TOKEN}{slot}").into()
}

#[cfg(test)]
mod tests {
    use crate::constraints::tokens::*;

    fn anti_affinity(text: &str) -> TokenKind {
        TokenKind::AntiAffinity(text.to_owned())
    }

    #[test]
    fn a_number_is_given_again_when_its_last_user_has_gone() {
        let mut tokens = TokenRegistry::default();
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        let none = NamedAmounts::new();
        tokens.set_used(&one, [anti_affinity("a")], &none);
        tokens.set_used(&two, [anti_affinity("a"), anti_affinity("b")], &none);
        let a = tokens.name_of(&anti_affinity("a")).expect("used");
        assert!(tokens.take_changed() && !tokens.take_changed());
        tokens.forget("one");
        assert_eq!(tokens.name_of(&anti_affinity("a")), Some(a.clone()), "the other still uses it");
        assert!(!tokens.take_changed());
        // It is not wanted any more, but still asked for.
        tokens.set_used(&two, [anti_affinity("b")], &NamedAmounts::from([(a.clone(), 1)]));
        assert_eq!(tokens.name_of(&anti_affinity("a")), Some(a.clone()));
        tokens.set_used(&two, [anti_affinity("b")], &none);
        assert_eq!(tokens.name_of(&anti_affinity("a")), None);
        tokens.set_used(&one, [anti_affinity("c")], &none);
        assert_eq!(tokens.name_of(&anti_affinity("c")), Some(a));
        assert_eq!(tokens.on_every_node().len(), 2);
    }

    #[test]
    fn words_name_what_a_token_means() {
        let mut tokens = TokenRegistry::default();
        let port = TokenKind::HostPort { protocol: "TCP".to_owned(), port: 8080, ip: None };
        tokens.set_used(&"one".into(), [port.clone()], &NamedAmounts::new());
        assert_eq!(tokens.describe("one"), ["the node's port 8080/TCP"]);
        assert!(tokens.describe("two").is_empty());
    }
}
