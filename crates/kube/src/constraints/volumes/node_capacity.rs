//! What a node has of tokens of which nodes do not have the same amount: volumes that were made on it, and how many more it
//! can attach.
//!
//! Whoever holds a token is counted by the World. So a node has what is free and what those have who hold the token; what
//! others have is gone from it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_core::resource::NamedAmounts;

use crate::cache::store::Key;
use crate::constraints::pod_constraints::AttachedVolumes;
use crate::constraints::tokens::TokenKind;
use crate::constraints::volumes::attach_limits::{attached_claims, units_for_sharers};
use crate::constraints::volumes::lister::CachedVolumes;
use crate::constraints::volumes::volume::{ClaimRequirements, PersistentVolume};
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::node::Node;

/// Who has which volume, and who was promised one, of those that have seats.
struct VolumeAssignments<'a> {
    /// The claim that a volume was promised to.
    promised: BTreeMap<&'a str, &'a str>,
    /// The gang of a claim that is counted by tokens, and what it asks for.
    holders: BTreeMap<&'a str, (&'a Arc<str>, &'a ClaimRequirements)>,
}

/// What is attached to a node by one driver, by claims. Of gangs that are about to start it may not be known which member
/// comes: then it is counted.
#[derive(Default)]
struct AttachedOnNode {
    /// Volumes of others, and those that members share.
    claims: BTreeSet<String>,
    /// Volumes that members have for themselves and have taken as tokens.
    held: BTreeSet<String>,
    held_by_unknown: u64,
    /// The same of gangs that were placed when nobody counted.
    untracked_by_unknown: u64,
}

impl AttachedOnNode {
    /// All of it, with these.
    fn total_with(mut self, more: BTreeSet<String>) -> u64 {
        self.claims.extend(self.held);
        self.claims.extend(more);
        self.claims.len() as u64 + self.held_by_unknown + self.untracked_by_unknown
    }

    /// What nobody has taken as a token.
    fn without_tokens(&self) -> u64 {
        self.claims.difference(&self.held).count() as u64 + self.untracked_by_unknown
    }
}

impl Host {
    /// What a node has of each token.
    pub(crate) fn node_tokens(&self, name: &Key, node: &Node) -> NamedAmounts {
        let mut amounts = self.constraints.on_every_node();
        let mut assignments = None;
        for (token, kind) in self.constraints.tokens.counted_per_node() {
            let amount = match kind {
                TokenKind::StaticVolume(requirements) => {
                    let assignments = assignments.get_or_insert_with(|| self.volume_assignments());
                    Some(self.static_volumes_on(node, requirements, kind, assignments))
                }
                TokenKind::VolumeAttachment(driver) => {
                    self.constraints.attach_limits.limit(name, driver).map(|limit| {
                        let there = self.attached_on(name, driver, None, Some(&token));
                        limit.saturating_sub(there.without_tokens())
                    })
                }
                TokenKind::SharedVolumeAttachment { gang, driver } => {
                    self.constraints.attach_limits.limit(name, driver).map(|limit| {
                        let there = self.attached_on(name, driver, Some(gang), None);
                        let all = there.total_with(self.shared_by(gang, driver));
                        units_for_sharers(limit.checked_sub(all))
                    })
                }
                TokenKind::HostPort { .. }
                | TokenKind::AntiAffinity(_)
                | TokenKind::TopologySpread { .. } => None,
            };
            amounts.extend(amount.map(|amount| (token, amount)));
        }
        amounts
    }

    /// Gangs that have seats and volumes that are looked for or counted.
    fn seated_with_volumes(&self) -> impl Iterator<Item = (&Arc<str>, &GangRecord)> {
        let all = self
            .constraints
            .gangs_with_volumes
            .iter()
            .filter_map(|name| Some((name, self.gangs.get(name)?)));
        all.filter(|(name, record)| self.is_placed(name, record))
    }

    fn volume_assignments(&self) -> VolumeAssignments<'_> {
        let mut assignments =
            VolumeAssignments { promised: BTreeMap::new(), holders: BTreeMap::new() };
        for (name, record) in self.seated_with_volumes() {
            let chosen = record.volume_binding.iter().flat_map(|choosing| &choosing.chosen);
            assignments.promised.extend(chosen.map(|(claim, volume)| (&**volume, &**claim)));
            for resolved in record.pod_constraints.values() {
                assignments.promised.extend(
                    resolved.assigned_volumes.iter().map(|(claim, volume)| (&**volume, &**claim)),
                );
                let wants = resolved.static_claims.iter();
                assignments
                    .holders
                    .extend(wants.map(|(claim, requirements)| (&**claim, (name, requirements))));
            }
        }
        assignments
    }

    fn static_volumes_on(
        &self,
        node: &Node,
        requirements: &ClaimRequirements,
        token: &TokenKind,
        assignments: &VolumeAssignments<'_>,
    ) -> u64 {
        let counts = |(name, volume): &(&Arc<str>, &PersistentVolume)| {
            let claim_ref = volume.claim_ref.as_ref().map(|claim_ref| &*claim_ref.claim);
            let Some(claim) = claim_ref.or_else(|| assignments.promised.get(&***name).copied())
            else {
                return volume.is_available;
            };
            assignments.holders.get(claim).is_some_and(|(gang, own)| {
                self.constraints.tokens.is_used_by(gang, token)
                    && !requirements.is_stricter_than(own)
            })
        };
        let volumes = self
            .constraints
            .volumes
            .node_local(node)
            .filter(|(_, volume)| volume.matches(requirements));
        volumes.filter(counts).count() as u64
    }

    /// What is attached to a node by a driver, but for what members of one gang attach.
    fn attached_on(
        &self,
        name: &str,
        driver: &str,
        except: Option<&Arc<str>>,
        token: Option<&Arc<str>>,
    ) -> AttachedOnNode {
        let mut there = AttachedOnNode::default();
        let lister = CachedVolumes { host: self, gang: "" };
        for (_, pod) in self.foreign_pods(name) {
            there.claims.extend(attached_claims(pod, &lister).remove(driver).unwrap_or_default());
        }
        let Some(node) = self.world.node_named(name) else { return there };
        for (id, _) in self.world.gangs_on(node) {
            let Some(gang) = self.world.gang(*id).filter(|gang| Some(&gang.spec.name) != except)
            else {
                continue;
            };
            let Some(record) = self.gangs.get(&gang.spec.name) else { continue };
            let mut seats: BTreeMap<u16, usize> = BTreeMap::new();
            for seat in gang.seats.iter().filter(|seat| seat.node == node) {
                *seats.entry(seat.role).or_default() += usize::from(seat.members);
            }
            for (role, members) in seats {
                let asks = gang.spec.roles.get(usize::from(role)).map(|role| &role.request);
                let holds =
                    |token: &Arc<str>| asks.is_some_and(|asks| asks.amounts.contains_key(token));
                let is_held = token.is_none_or(holds);
                let (own, by_unknown) =
                    self.attached_by(record, (role, members), (name, driver), &mut there.claims);
                match is_held {
                    true => there.held.extend(own),
                    false => there.claims.extend(own),
                }
                *(if is_held {
                    &mut there.held_by_unknown
                } else {
                    &mut there.untracked_by_unknown
                }) += by_unknown;
            }
        }
        there
    }

    /// What members of a role that have so many seats on a node attach there for themselves, and how much more those do of
    /// whom it is not known which of them come. What they share is added to the rest.
    fn attached_by(
        &self,
        record: &GangRecord,
        (role, members): (u16, usize),
        (node, driver): (&str, &str),
        shared: &mut BTreeSet<String>,
    ) -> (BTreeSet<String>, u64) {
        let place = |key: &Key| {
            let there = self.cache.pods.get(key).and_then(|pod| pod.node());
            there.or(record.assigned_nodes.get(key).map(|node| &**node))
        };
        let is_mine = |key: &Key| record.pod_roles.get(key) == Some(&role);
        let mut there: Vec<&AttachedVolumes> = Vec::new();
        let mut unassigned: Vec<&AttachedVolumes> = Vec::new();
        let mut known = 0;
        for (key, resolved) in record.pod_constraints.iter().filter(|(key, _)| is_mine(key)) {
            let list = match place(key) {
                Some(at) if at == node => {
                    known += 1;
                    &mut there
                }
                Some(_) => continue,
                None => &mut unassigned,
            };
            list.extend(resolved.attached_volumes.get(driver));
        }
        let rest = members.saturating_sub(known);
        let mut by_unknown = 0;
        if rest >= unassigned.len() {
            there.append(&mut unassigned); // all of them come
        } else if rest > 0 {
            let most = unassigned.iter().map(|one| one.own.len() as u64).max().unwrap_or(0);
            by_unknown = most * rest as u64;
        }
        let all = there.iter().chain(unassigned.iter().filter(|_| rest > 0));
        shared.extend(all.flat_map(|one| one.shared.iter().cloned()));
        (there.iter().flat_map(|one| one.own.iter().cloned()).collect(), by_unknown)
    }

    /// Volumes of a driver that members of a gang share.
    fn shared_by(&self, gang: &str, driver: &str) -> BTreeSet<String> {
        let resolved =
            self.gangs.get(gang).into_iter().flat_map(|record| record.pod_constraints.values());
        let attached_volumes =
            resolved.filter_map(|resolved| resolved.attached_volumes.get(driver));
        attached_volumes.flat_map(|one| one.shared.iter().cloned()).collect()
    }

    /// Nodes and pools are told anew when there are other tokens than before, and nodes that have volumes or attach only so
    /// many when others have seats than before.
    pub(crate) fn refresh_node_tokens(&mut self) {
        let seated = self.seated_with_volumes().map(|(name, _)| name.clone()).collect();
        let changed =
            std::mem::replace(&mut self.constraints.seated, seated) != self.constraints.seated;
        let changed = std::mem::take(&mut self.constraints.recount_nodes) | changed;
        let everywhere = self.constraints.tokens.take_changed();
        if everywhere {
            self.tell_pools();
        } else if !changed {
            return;
        }
        let counts = |(name, node): &(&Key, &Arc<Node>)| {
            everywhere
                || self.constraints.volumes.has_node_local_volumes(node)
                || self.constraints.attach_limits.has_limits(name)
        };
        let nodes: Vec<Key> =
            self.cache.nodes.iter().filter(counts).map(|(name, _)| name.clone()).collect();
        nodes.iter().for_each(|node| self.reconcile_node(node));
    }

    /// Whether nodes have what a gang that is to be admitted needs of their volumes: others may have been given seats a
    /// moment ago. If not the planner is told.
    pub(crate) fn volumes_still_available(&mut self, name: &str, nodes: &[Key]) -> bool {
        if !self.constraints.gangs_with_volumes.contains(name) {
            return true;
        }
        let was = std::mem::take(&mut self.world_changed);
        nodes.iter().for_each(|node| self.reconcile_node(node));
        let changed = self.world_changed;
        self.world_changed |= was;
        !changed
    }
}
