//! The amount on each node of tokens that differ between nodes: free static volumes, and attachments up to the attach
//! limit.
//!
//! The World counts the members that hold a token. So a node has what is free plus what token holders have; what pods
//! without the token have is subtracted.

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

/// Which claims of placed gangs were promised which volumes, and which are counted by tokens.
struct VolumeAssignments<'a> {
    /// The claim that a volume was promised to.
    promised: BTreeMap<&'a str, &'a str>,
    /// The gang of a claim that is counted by tokens, and its requirements.
    holders: BTreeMap<&'a str, (&'a Arc<str>, &'a ClaimRequirements)>,
}

/// What is attached to a node by one CSI driver, by claims. Of gangs that are about to start it may not be known which
/// member comes to the node: then attachments are counted instead.
#[derive(Default)]
struct AttachedOnNode {
    /// Volumes of pods without the token, and those that members share.
    claims: BTreeSet<String>,
    /// Volumes of single members that hold tokens for them.
    held: BTreeSet<String>,
    held_by_unknown: u64,
    /// The same for gangs that were placed without tokens for them.
    untracked_by_unknown: u64,
}

impl AttachedOnNode {
    /// The number of all attachments, with these.
    fn total_with(mut self, more: BTreeSet<String>) -> u64 {
        self.claims.extend(self.held);
        self.claims.extend(more);
        self.claims.len() as u64 + self.held_by_unknown + self.untracked_by_unknown
    }

    /// The number of attachments without tokens.
    fn without_tokens(&self) -> u64 {
        self.claims.difference(&self.held).count() as u64 + self.untracked_by_unknown
    }
}

impl Host {
    /// The amount of each token on a node.
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

    /// Placed gangs with volumes that are to be found or counted.
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

    /// What is attached to a node by a CSI driver, except by members of one gang.
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

    /// What members of a role with so many seats on a node attach there for themselves: by claims, and a number for
    /// members of which it is not known which come. Volumes that they share are added to `shared`.
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

    /// Volumes of a CSI driver that members of a gang share.
    fn shared_by(&self, gang: &str, driver: &str) -> BTreeSet<String> {
        let resolved =
            self.gangs.get(gang).into_iter().flat_map(|record| record.pod_constraints.values());
        let attached_volumes =
            resolved.filter_map(|resolved| resolved.attached_volumes.get(driver));
        attached_volumes.flat_map(|one| one.shared.iter().cloned()).collect()
    }

    /// Computes the tokens of all nodes and pools again when the set of tokens changed, and those of nodes with static
    /// volumes or attach limits when other gangs have seats than before.
    pub(crate) fn refresh_node_tokens(&mut self) {
        let seated = self.seated_with_volumes().map(|(name, _)| name.clone()).collect();
        let changed =
            std::mem::replace(&mut self.constraints.seated, seated) != self.constraints.seated;
        let changed = std::mem::take(&mut self.constraints.recount_nodes) | changed;
        let everywhere = self.constraints.tokens.take_changed();
        if everywhere {
            self.apply_pools();
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

    /// Whether nodes still have the volume tokens for a gang that is to be admitted: other gangs may have got seats a
    /// moment ago. If not, the World has the new amounts, and the planner decides again.
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
