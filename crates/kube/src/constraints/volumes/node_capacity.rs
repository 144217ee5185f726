//! What a node has of tokens of which nodes do not have the same amount: volumes that were made on it, and how many more it
//! can attach.
//!
//! Whoever holds a token is counted by the World. So a node has what is free and what those have who hold the token; what
//! others have is gone from it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_core::resource::NamedAmounts;

use crate::cache::store::Key;
use crate::constraints::pod_constraints::Attaches;
use crate::constraints::tokens::Meaning;
use crate::constraints::volumes::attach_limits::{attached, left_for_sharers};
use crate::constraints::volumes::lister::Shop;
use crate::constraints::volumes::volume::{Shape, StoredVolume};
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::node::Node;

/// Who has which volume, and who was promised one, of those that have seats.
struct Books<'a> {
    /// The claim that a volume was promised to.
    promised: BTreeMap<&'a str, &'a str>,
    /// The gang of a claim that is counted by tokens, and what it asks for.
    holders: BTreeMap<&'a str, (&'a Arc<str>, &'a Shape)>,
}

/// What is attached to a node by one driver, by claims. Of gangs that are about to start it may not be known which member
/// comes: then it is counted.
#[derive(Default)]
struct OnNode {
    /// Volumes of others, and those that members share.
    claims: BTreeSet<String>,
    /// Volumes that members have for themselves and have taken as tokens.
    held: BTreeSet<String>,
    held_by_some: u64,
    /// The same of gangs that were placed when nobody counted.
    loose_by_some: u64,
}

impl OnNode {
    /// All of it, with these.
    fn with(mut self, more: BTreeSet<String>) -> u64 {
        self.claims.extend(self.held);
        self.claims.extend(more);
        self.claims.len() as u64 + self.held_by_some + self.loose_by_some
    }

    /// What nobody has taken as a token.
    fn untaken(&self) -> u64 {
        self.claims.difference(&self.held).count() as u64 + self.loose_by_some
    }
}

impl Host {
    /// What a node has of each token.
    pub(crate) fn tokens_on(&self, name: &Key, node: &Node) -> NamedAmounts {
        let mut amounts = self.constraints.on_every_node();
        let mut books = None;
        for (token, meaning) in self.constraints.tokens.counted() {
            let amount = match meaning {
                Meaning::StoredVolume(shape) => {
                    let books = books.get_or_insert_with(|| self.books());
                    Some(self.disks_on(node, shape, meaning, books))
                }
                Meaning::Attached(driver) => {
                    self.constraints.limits.of(name, driver).map(|limit| {
                        let there = self.attached_on(name, driver, None, Some(&token));
                        limit.saturating_sub(there.untaken())
                    })
                }
                Meaning::AttachedTo { gang, driver } => {
                    self.constraints.limits.of(name, driver).map(|limit| {
                        let there = self.attached_on(name, driver, Some(gang), None);
                        let all = there.with(self.shared_by(gang, driver));
                        left_for_sharers(limit.checked_sub(all))
                    })
                }
                Meaning::Port { .. } | Meaning::Apart(_) | Meaning::Even { .. } => None,
            };
            amounts.extend(amount.map(|amount| (token, amount)));
        }
        amounts
    }

    /// Gangs that have seats and volumes that are looked for or counted.
    fn seated_with_volumes(&self) -> impl Iterator<Item = (&Arc<str>, &GangRecord)> {
        let all =
            self.constraints.volumes.iter().filter_map(|name| Some((name, self.gangs.get(name)?)));
        all.filter(|(name, group)| self.is_settled(name, group))
    }

    fn books(&self) -> Books<'_> {
        let mut books = Books { promised: BTreeMap::new(), holders: BTreeMap::new() };
        for (name, group) in self.seated_with_volumes() {
            let chosen = group.volume_binding.iter().flat_map(|choosing| &choosing.chosen);
            books.promised.extend(chosen.map(|(claim, disk)| (&**disk, &**claim)));
            for tied in group.pod_constraints.values() {
                books.promised.extend(tied.given.iter().map(|(claim, disk)| (&**disk, &**claim)));
                let wants = tied.wants.iter();
                books.holders.extend(wants.map(|(claim, shape)| (&**claim, (name, shape))));
            }
        }
        books
    }

    fn disks_on(&self, node: &Node, shape: &Shape, token: &Meaning, books: &Books<'_>) -> u64 {
        let counts = |(name, disk): &(&Arc<str>, &StoredVolume)| {
            let owner = disk.owner.as_ref().map(|owner| &*owner.claim);
            let Some(claim) = owner.or_else(|| books.promised.get(&***name).copied()) else {
                return disk.is_open;
            };
            books.holders.get(claim).is_some_and(|(gang, own)| {
                self.constraints.tokens.is_used_by(gang, token) && !shape.is_narrower_than(own)
            })
        };
        let disks = self.constraints.disks.only_on(node).filter(|(_, disk)| disk.suits(shape));
        disks.filter(counts).count() as u64
    }

    /// What is attached to a node by a driver, but for what members of one gang attach.
    fn attached_on(
        &self,
        name: &str,
        driver: &str,
        but: Option<&Arc<str>>,
        token: Option<&Arc<str>>,
    ) -> OnNode {
        let mut there = OnNode::default();
        let shop = Shop { host: self, gang: "" };
        for (_, pod) in self.foreign_pods(name) {
            there.claims.extend(attached(pod, &shop).remove(driver).unwrap_or_default());
        }
        let Some(node) = self.world.node_named(name) else { return there };
        for (id, _) in self.world.gangs_on(node) {
            let Some(gang) = self.world.gang(*id).filter(|gang| Some(&gang.spec.name) != but)
            else {
                continue;
            };
            let Some(group) = self.gangs.get(&gang.spec.name) else { continue };
            let mut seats: BTreeMap<u16, usize> = BTreeMap::new();
            for seat in gang.seats.iter().filter(|seat| seat.node == node) {
                *seats.entry(seat.role).or_default() += usize::from(seat.members);
            }
            for (role, members) in seats {
                let asks = gang.spec.roles.get(usize::from(role)).map(|role| &role.request);
                let holds =
                    |token: &Arc<str>| asks.is_some_and(|asks| asks.amounts.contains_key(token));
                let is_held = token.is_none_or(holds);
                let (own, by_some) =
                    self.attached_by(group, (role, members), (name, driver), &mut there.claims);
                match is_held {
                    true => there.held.extend(own),
                    false => there.claims.extend(own),
                }
                *(if is_held { &mut there.held_by_some } else { &mut there.loose_by_some }) +=
                    by_some;
            }
        }
        there
    }

    /// What members of a role that have so many seats on a node attach there for themselves, and how much more those do of
    /// whom it is not known which of them come. What they share is added to the rest.
    fn attached_by(
        &self,
        group: &GangRecord,
        (role, members): (u16, usize),
        (node, driver): (&str, &str),
        shared: &mut BTreeSet<String>,
    ) -> (BTreeSet<String>, u64) {
        let place = |key: &Key| {
            let there = self.cache.pods.get(key).and_then(|pod| pod.node());
            there.or(group.assigned_nodes.get(key).map(|node| &**node))
        };
        let is_mine = |key: &Key| group.pod_roles.get(key) == Some(&role);
        let mut there: Vec<&Attaches> = Vec::new();
        let mut nowhere: Vec<&Attaches> = Vec::new();
        let mut known = 0;
        for (key, tied) in group.pod_constraints.iter().filter(|(key, _)| is_mine(key)) {
            let list = match place(key) {
                Some(at) if at == node => {
                    known += 1;
                    &mut there
                }
                Some(_) => continue,
                None => &mut nowhere,
            };
            list.extend(tied.attaches.get(driver));
        }
        let rest = members.saturating_sub(known);
        let mut by_some = 0;
        if rest >= nowhere.len() {
            there.append(&mut nowhere); // all of them come
        } else if rest > 0 {
            let most = nowhere.iter().map(|one| one.own.len() as u64).max().unwrap_or(0);
            by_some = most * rest as u64;
        }
        let all = there.iter().chain(nowhere.iter().filter(|_| rest > 0));
        shared.extend(all.flat_map(|one| one.shared.iter().cloned()));
        (there.iter().flat_map(|one| one.own.iter().cloned()).collect(), by_some)
    }

    /// Volumes of a driver that members of a gang share.
    fn shared_by(&self, gang: &str, driver: &str) -> BTreeSet<String> {
        let tied =
            self.gangs.get(gang).into_iter().flat_map(|group| group.pod_constraints.values());
        let attaches = tied.filter_map(|tied| tied.attaches.get(driver));
        attaches.flat_map(|one| one.shared.iter().cloned()).collect()
    }

    /// Nodes and pools are told anew when there are other tokens than before, and nodes that have volumes or attach only so
    /// many when others have seats than before.
    pub(crate) fn settle_tokens(&mut self) {
        let seated = self.seated_with_volumes().map(|(name, _)| name.clone()).collect();
        let is_news =
            std::mem::replace(&mut self.constraints.seated, seated) != self.constraints.seated;
        let is_news = std::mem::take(&mut self.constraints.recount) | is_news;
        let everywhere = self.constraints.tokens.have_changed();
        if everywhere {
            self.tell_pools();
        } else if !is_news {
            return;
        }
        let counts = |(name, node): &(&Key, &Arc<Node>)| {
            everywhere || self.constraints.disks.is_home(node) || self.constraints.limits.has(name)
        };
        let nodes: Vec<Key> =
            self.cache.nodes.iter().filter(counts).map(|(name, _)| name.clone()).collect();
        nodes.iter().for_each(|node| self.reconcile_node(node));
    }

    /// Whether nodes have what a gang that is to be admitted needs of their volumes: others may have been given seats a
    /// moment ago. If not the planner is told.
    pub(crate) fn volumes_are_left(&mut self, name: &str, nodes: &[Key]) -> bool {
        if !self.constraints.volumes.contains(name) {
            return true;
        }
        let was = std::mem::take(&mut self.world_changed);
        nodes.iter().for_each(|node| self.reconcile_node(node));
        let is_news = self.world_changed;
        self.world_changed |= was;
        !is_news
    }
}
