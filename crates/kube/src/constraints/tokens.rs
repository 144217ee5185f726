//! Tokens: what only so many pods can have of one node, as a resource. Of most of them every node has as much; what nodes
//! have more or less of is counted for each (`amounts`).
//!
//! The planner never forgets the name of a resource, and ports and selectors come and go with every job. So tokens are
//! numbered, and a number that nobody uses any more is given to the next who needs one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use muster_core::resource::{NamedAmounts, TOKEN};

use crate::constraints::volumes::attach_limits::MEMBERS;
use crate::constraints::volumes::volume::Shape;

/// What a node has of each token. A member that wants the node for itself takes all of it, one that only must not meet
/// such a member takes one, and where `n` may share a node each takes the `n`th part, which is exact up to a thousand.
pub(crate) const WHOLE: u64 = 1_000_000;

/// What a token stands for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Meaning {
    /// A port of the node, on one of its addresses or on all of them.
    Port { protocol: String, port: u16, ip: Option<String> },
    /// Being the only one of these pods.
    Apart(String),
    /// A gang's evenness over nodes, by one of its rules.
    Even { gang: Arc<str>, rule: String },
    /// A volume that somebody has made on the node: a node has as many as it has.
    StoredVolume(Shape),
    /// Being attached to the node by this driver: a node takes so many.
    Attached(Arc<str>),
    /// The same for a gang whose members share volumes, besides these.
    AttachedTo { gang: Arc<str>, driver: Arc<str> },
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port { protocol, port, ip: None } => {
                write!(f, "the node's port {port}/{protocol}")
            }
            Self::Port { protocol, port, ip: Some(ip) } => {
                write!(f, "the node's port {ip}:{port}/{protocol}")
            }
            Self::Apart(scope) => write!(f, "a node without {scope}"),
            Self::Even { rule, .. } => write!(f, "a node with few {rule}"),
            Self::StoredVolume(shape) => write!(f, "{shape} on the node"),
            Self::Attached(driver) | Self::AttachedTo { driver, .. } => {
                write!(f, "a node that can attach their volumes of {driver}")
            }
        }
    }
}

/// Which number stands for what, and who uses it.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    slots: Vec<Option<Meaning>>,
    by_meaning: BTreeMap<Meaning, usize>,
    users: BTreeMap<Arc<str>, BTreeSet<usize>>,
    /// Whether nodes have other tokens than they were told.
    changed: bool,
}

impl Tokens {
    /// The token that stands for something, if somebody uses it.
    pub(crate) fn of(&self, meaning: &Meaning) -> Option<Arc<str>> {
        self.by_meaning.get(meaning).map(|slot| name(*slot))
    }

    /// A gang uses these tokens from now on, besides those that it still asks for by name, and no others.
    pub(crate) fn want(
        &mut self,
        gang: &Arc<str>,
        meanings: impl IntoIterator<Item = Meaning>,
        asked: &NamedAmounts,
    ) {
        let mut wanted: BTreeSet<usize> =
            meanings.into_iter().map(|meaning| self.slot(meaning)).collect();
        let before = self.users.remove(gang).unwrap_or_default();
        wanted.extend(before.iter().filter(|slot| asked.contains_key(&name(**slot))));
        if !wanted.is_empty() {
            self.users.insert(gang.clone(), wanted);
        }
        self.free(before);
    }

    /// A gang uses nothing any more.
    pub(crate) fn forget(&mut self, gang: &str) {
        if let Some(before) = self.users.remove(gang) {
            self.free(before);
        }
    }

    fn slot(&mut self, meaning: Meaning) -> usize {
        if let Some(slot) = self.by_meaning.get(&meaning) {
            return *slot;
        }
        self.changed = true;
        let slot = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.by_meaning.insert(meaning.clone(), slot);
        self.slots[slot] = Some(meaning);
        slot
    }

    /// Drops those of these numbers that nobody uses.
    fn free(&mut self, slots: BTreeSet<usize>) {
        for slot in slots {
            if !self.users.values().any(|used| used.contains(&slot))
                && let Some(meaning) = self.slots[slot].take()
            {
                self.by_meaning.remove(&meaning);
                self.changed = true;
            }
        }
    }

    /// Whether nodes must be told anew, once.
    pub(crate) fn have_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// What a node has of which nothing is known yet. Nobody has made a volume on it.
    pub(crate) fn on_every_node(&self) -> NamedAmounts {
        let others =
            self.by_meaning.iter().filter(|(of, _)| !matches!(of, Meaning::StoredVolume(_)));
        let amount = |of: &Meaning| match of {
            Meaning::AttachedTo { .. } => WHOLE * MEMBERS,
            _ => WHOLE,
        };
        others.map(|(of, slot)| (name(*slot), amount(of))).collect()
    }

    /// Tokens of which nodes do not have the same amount.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (Arc<str>, &Meaning)> {
        let is_counted = |meaning: &Meaning| match meaning {
            Meaning::StoredVolume(_) | Meaning::Attached(_) | Meaning::AttachedTo { .. } => true,
            Meaning::Port { .. } | Meaning::Apart(_) | Meaning::Even { .. } => false,
        };
        let counted = self.by_meaning.iter().filter(move |(meaning, _)| is_counted(meaning));
        counted.map(|(meaning, slot)| (name(*slot), meaning))
    }

    /// Whether a gang uses the token that stands for something.
    pub(crate) fn is_used_by(&self, gang: &str, meaning: &Meaning) -> bool {
        let slot = self.by_meaning.get(meaning);
        slot.zip(self.users.get(gang)).is_some_and(|(slot, used)| used.contains(slot))
    }

    /// What a gang's tokens mean.
    pub(crate) fn in_words(&self, gang: &str) -> Vec<String> {
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

    fn apart(text: &str) -> Meaning {
        Meaning::Apart(text.to_owned())
    }

    #[test]
    fn a_number_is_given_again_when_its_last_user_has_gone() {
        let mut tokens = Tokens::default();
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        let none = NamedAmounts::new();
        tokens.want(&one, [apart("a")], &none);
        tokens.want(&two, [apart("a"), apart("b")], &none);
        let a = tokens.of(&apart("a")).expect("used");
        assert!(tokens.have_changed() && !tokens.have_changed());
        tokens.forget("one");
        assert_eq!(tokens.of(&apart("a")), Some(a.clone()), "the other still uses it");
        assert!(!tokens.have_changed());
        // It is not wanted any more, but still asked for.
        tokens.want(&two, [apart("b")], &NamedAmounts::from([(a.clone(), 1)]));
        assert_eq!(tokens.of(&apart("a")), Some(a.clone()));
        tokens.want(&two, [apart("b")], &none);
        assert_eq!(tokens.of(&apart("a")), None);
        tokens.want(&one, [apart("c")], &none);
        assert_eq!(tokens.of(&apart("c")), Some(a));
        assert_eq!(tokens.on_every_node().len(), 2);
    }

    #[test]
    fn words_name_what_a_token_means() {
        let mut tokens = Tokens::default();
        let port = Meaning::Port { protocol: "TCP".to_owned(), port: 8080, ip: None };
        tokens.want(&"one".into(), [port.clone()], &NamedAmounts::new());
        assert_eq!(tokens.in_words("one"), ["the node's port 8080/TCP"]);
        assert!(tokens.in_words("two").is_empty());
    }
}
