//! Tokens: per-node limits (host port, anti-affinity, topology spread, volumes) as resources that the planner counts.
//! Of most tokens every node has the same amount; the others are counted for each node (`volumes::node_capacity`).
//!
//! The planner never forgets the name of a resource, and ports and selectors come and go with every job. So tokens are
//! numbered, and a number that no gang uses any more is reused for the next token.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use muster_core::resource::{NamedAmounts, TOKEN};

use crate::constraints::volumes::attach_limits::UNITS_PER_ATTACHMENT;
use crate::constraints::volumes::volume::ClaimRequirements;

/// The amount of each token on a node. A member that excludes all others takes all of it, one that is only excluded by
/// such a member takes one unit, and where `n` members may share a node each takes the `n`th part, which is exact up to
/// a thousand.
pub(crate) const TOKENS_PER_NODE: u64 = 1_000_000;

/// What a token stands for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum TokenKind {
    /// A host port, on one address of the node or on all of them.
    HostPort { protocol: String, port: u16, ip: Option<String> },
    /// Required anti-affinity by hostname to these pods.
    AntiAffinity(String),
    /// Topology spread of a gang over nodes, by one of its rules.
    TopologySpread { gang: Arc<str>, rule: String },
    /// A free static PersistentVolume that only this node reaches: a node has as many as there are.
    StaticVolume(ClaimRequirements),
    /// An attachment of a volume by this CSI driver: a node has as many as its attach limit.
    VolumeAttachment(Arc<str>),
    /// The same for a gang whose members share volumes, beside those shared volumes.
    SharedVolumeAttachment { gang: Arc<str>, driver: Arc<str> },
}

impl fmt::Display for TokenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostPort { protocol, port, ip: None } => {
                write!(f, "host port {port}/{protocol}")
            }
            Self::HostPort { protocol, port, ip: Some(ip) } => {
                write!(f, "host port {ip}:{port}/{protocol}")
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

/// Which number stands for which token, and which gangs use it.
#[derive(Debug, Default)]
pub(crate) struct TokenRegistry {
    slots: Vec<Option<TokenKind>>,
    by_kind: BTreeMap<TokenKind, usize>,
    users: BTreeMap<Arc<str>, BTreeSet<usize>>,
    /// Whether there are other tokens than those last given to nodes.
    changed: bool,
}

impl TokenRegistry {
    /// The resource name of a token, if a gang uses it.
    pub(crate) fn name_of(&self, kind: &TokenKind) -> Option<Arc<str>> {
        self.by_kind.get(kind).map(|slot| name(*slot))
    }

    /// A gang uses these tokens from now on, those that its submitted requests still name, and no others.
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

    /// A gang uses no tokens any more.
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

    /// Frees those of these numbers that no gang uses.
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

    /// Whether the tokens of nodes must be computed again; each change is reported once.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// The tokens of a node about which nothing is known yet. It has no static volumes.
    pub(crate) fn on_every_node(&self) -> NamedAmounts {
        let others =
            self.by_kind.iter().filter(|(of, _)| !matches!(of, TokenKind::StaticVolume(_)));
        let amount = |of: &TokenKind| match of {
            TokenKind::SharedVolumeAttachment { .. } => TOKENS_PER_NODE * UNITS_PER_ATTACHMENT,
            _ => TOKENS_PER_NODE,
        };
        others.map(|(of, slot)| (name(*slot), amount(of))).collect()
    }

    /// Tokens of which nodes have different amounts.
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

    /// Whether a gang uses a token.
    pub(crate) fn is_used_by(&self, gang: &str, kind: &TokenKind) -> bool {
        let slot = self.by_kind.get(kind);
        slot.zip(self.users.get(gang)).is_some_and(|(slot, used)| used.contains(slot))
    }

    /// A gang's tokens, for people.
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
    fn a_token_number_is_reused_when_its_last_gang_is_gone() {
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
        // No longer needed, but still named by the submitted request.
        tokens.set_used(&two, [anti_affinity("b")], &NamedAmounts::from([(a.clone(), 1)]));
        assert_eq!(tokens.name_of(&anti_affinity("a")), Some(a.clone()));
        tokens.set_used(&two, [anti_affinity("b")], &none);
        assert_eq!(tokens.name_of(&anti_affinity("a")), None);
        tokens.set_used(&one, [anti_affinity("c")], &none);
        assert_eq!(tokens.name_of(&anti_affinity("c")), Some(a));
        assert_eq!(tokens.on_every_node().len(), 2);
    }

    #[test]
    fn descriptions_name_what_a_token_stands_for() {
        let mut tokens = TokenRegistry::default();
        let port = TokenKind::HostPort { protocol: "TCP".to_owned(), port: 8080, ip: None };
        tokens.set_used(&"one".into(), [port.clone()], &NamedAmounts::new());
        assert_eq!(tokens.describe("one"), ["host port 8080/TCP"]);
        assert!(tokens.describe("two").is_empty());
    }
}
