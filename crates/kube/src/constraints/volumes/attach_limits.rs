//! Attach limits: how many volumes of each CSI driver a node can attach, by its CSINode, and what members attach.
//!
//! A volume counts once on a node, however many pods there use it. Volumes of a single pod are tokens, of which the pod
//! takes as many as it has volumes. Volumes that members share count on each node with such a member, so no single
//! member can take them: a gang with shared volumes has a token of its own, of which a node has what is left beside the
//! shared volumes and everything that other pods attach there. That amount is computed again before the gang is
//! admitted.
//!
//! Volumes are identified by their claims. Deliberately not here: in-tree volume drivers, volumes that a pod describes
//! in place, and volumes that are still attached although no pod uses them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::api::DynamicObject;
use serde_json::Value;

use crate::cache::store::Key;
use crate::constraints::cluster_view::namespace;
use crate::constraints::pod_constraints::{AttachedVolumes, PodConstraints};
use crate::constraints::tokens::TokenKind;
use crate::constraints::volumes::claims::{
    ClaimState, claim_state, claims, class_of, is_static, text,
};
use crate::constraints::volumes::lister::VolumeLister;
use crate::objects::pod::Pod;

/// Token units per attachment for gangs that share volumes. Each member takes one unit besides, so that a member
/// without volumes of its own still takes something.
pub(crate) const UNITS_PER_ATTACHMENT: u64 = 1_000;

/// How many volumes of each CSI driver nodes can attach. A node without a limit attaches any number.
#[derive(Debug, Default)]
pub(crate) struct AttachLimits {
    by_node: BTreeMap<Key, BTreeMap<Arc<str>, u64>>,
}

impl AttachLimits {
    /// Applies a CSINode. Returns whether its limits changed.
    pub(crate) fn update(&mut self, node: &Key, is: Option<&DynamicObject>) -> bool {
        let limits = is.map(read).unwrap_or_default();
        let was = match limits.is_empty() {
            true => self.by_node.remove(node),
            false => self.by_node.insert(node.clone(), limits.clone()),
        };
        was.unwrap_or_default() != limits
    }

    pub(crate) fn limit(&self, node: &str, driver: &str) -> Option<u64> {
        self.by_node.get(node)?.get(driver).copied()
    }

    pub(crate) fn has_limit(&self, driver: &str) -> bool {
        self.by_node.values().any(|drivers| drivers.contains_key(driver))
    }

    pub(crate) fn has_limits(&self, node: &str) -> bool {
        self.by_node.contains_key(node)
    }
}

fn read(node: &DynamicObject) -> BTreeMap<Arc<str>, u64> {
    let drivers = node.data.pointer("/spec/drivers").and_then(Value::as_array);
    let one = |driver: &Value| {
        let count = driver.pointer("/allocatable/count")?.as_u64()?;
        Some((text(driver, "/name")?.into(), count))
    };
    drivers.into_iter().flatten().filter_map(one).collect()
}

/// The claims of a pod that a CSI driver attaches, by driver.
pub(crate) fn attached_claims(
    pod: &Pod,
    lister: &impl VolumeLister,
) -> BTreeMap<Arc<str>, BTreeSet<String>> {
    let mut attached: BTreeMap<Arc<str>, BTreeSet<String>> = BTreeMap::new();
    for name in claims(pod) {
        let Some(claim) = lister.claim(namespace(pod), &name) else { continue };
        let driver = match claim_state(claim, lister) {
            ClaimState::Bound(volume) | ClaimState::Prebound(volume) => {
                lister.volume(volume).and_then(|volume| text(&volume.data, "/spec/csi/driver"))
            }
            ClaimState::WaitForFirstConsumer(_) | ClaimState::Pending => {
                let class = class_of(claim, lister).filter(|class| !is_static(class));
                class.and_then(|class| text(&class.data, "/provisioner"))
            }
        };
        if let Some(driver) = driver {
            let key = format!("{}/{name}", namespace(pod));
            attached.entry(driver.into()).or_default().insert(key);
        }
    }
    attached
}

/// Counts what members attach and takes tokens for it. `others` are placed pods outside the gang, which may share
/// volumes with it.
pub(crate) fn add_attachments(
    gang: &Arc<str>,
    members: &[&Pod],
    others: &[&Pod],
    lister: &impl VolumeLister,
    resolved: &mut [PodConstraints],
) {
    let each: Vec<_> = members.iter().map(|pod| attached_claims(pod, lister)).collect();
    let mut users: BTreeMap<&String, u32> = BTreeMap::new();
    for claim in each.iter().flat_map(BTreeMap::values).flatten() {
        *users.entry(claim).or_default() += 1;
    }
    if users.is_empty() {
        return;
    }
    for other in others {
        for name in claims(other) {
            if let Some(users) = users.get_mut(&format!("{}/{name}", namespace(other))) {
                *users += 1;
            }
        }
    }
    for (all, resolved) in each.iter().zip(&mut *resolved) {
        for (driver, claims) in all {
            let (own, shared) = claims.iter().cloned().partition(|claim| users[claim] == 1);
            resolved.attached_volumes.insert(driver.clone(), AttachedVolumes { own, shared });
        }
    }
    let sharing = each.iter().flatten().filter(|(_, all)| all.iter().any(|one| users[one] > 1));
    let sharing: BTreeSet<&Arc<str>> = sharing.map(|(driver, _)| driver).collect();
    for resolved in resolved {
        for (driver, AttachedVolumes { own, .. }) in resolved.attached_volumes.clone() {
            if !lister.has_attach_limit(&driver) {
                continue;
            }
            let own = own.len() as u64;
            if own > 0 {
                resolved.take_token(TokenKind::VolumeAttachment(driver.clone()), own);
            }
            if sharing.contains(&driver) {
                let kind = TokenKind::SharedVolumeAttachment { gang: gang.clone(), driver };
                resolved.take_token(kind, own * UNITS_PER_ATTACHMENT + 1);
            }
        }
    }
}

/// The token units of a gang that shares volumes on a node that can attach `left` more volumes beside the shared ones;
/// none where the shared ones do not fit.
pub(crate) fn units_for_sharers(left: Option<u64>) -> u64 {
    left.map_or(0, |left| left * UNITS_PER_ATTACHMENT + (UNITS_PER_ATTACHMENT - 1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::constraints::cluster_view::fixtures::{pod, text};
    use crate::constraints::volumes::attach_limits::*;
    use crate::constraints::volumes::lister::fixtures::FakeVolumes;

    fn lister() -> FakeVolumes {
        let object = |value: Value| serde_json::from_value(value).expect("an object");
        let done = json!({"annotations": {"pv.kubernetes.io/bind-completed": "yes"}});
        let has = |volume: &str| object(json!({"metadata": done, "spec": {"volumeName": volume}}));
        let late = |class: &str| object(json!({"spec": {"storageClassName": class}}));
        let csi = |driver: &str| object(json!({"spec": {"csi": {"driver": driver}}}));
        let class = |by: &str| {
            object(json!({"provisioner": by, "volumeBindingMode": "WaitForFirstConsumer"}))
        };
        let named = |pairs: Vec<(&str, DynamicObject)>| {
            pairs.into_iter().map(|(name, one)| (name.to_owned(), one)).collect()
        };
        FakeVolumes {
            claims: named(vec![
                ("x", has("disk")),
                ("y", has("disk")),
                ("files", has("files")),
                ("nfs", has("nfs")),
                ("late", late("late")),
                ("hand", late("hand")),
            ]),
            volumes: named(vec![
                ("disk", csi("disks")),
                ("files", csi("files")),
                ("nfs", object(json!({"spec": {"nfs": {}}}))),
            ]),
            classes: named(vec![
                ("late", class("disks")),
                ("hand", class("kubernetes.io/no-provisioner")),
            ]),
            limited: ["disks".to_owned()].into(),
            ..FakeVolumes::default()
        }
    }

    fn uses(claims: &str) -> Pod {
        let volume =
            |name: &str| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
        let volumes: Vec<Value> = claims.split_whitespace().map(volume).collect();
        pod("db", &json!({"volumes": volumes}))
    }

    #[test]
    fn own_volumes_take_tokens_and_shared_volumes_leave_room() {
        let words = "a node that can attach their volumes of disks";
        // Claims of members, claims of other pods, and the tokens that members take.
        for (members, others, expected) in [
            ("x", "", vec!["1"]),
            ("x late", "", vec!["2"]),
            ("files nfs hand", "", vec![""]),
            ("x|y", "", vec!["1", "1"]),
            ("x|x", "", vec!["shares 1", "shares 1"]),
            ("x y|y", "", vec!["1 shares 1001", "shares 1"]),
            ("x|files", "x", vec!["shares 1", ""]),
        ] {
            let members: Vec<Pod> = members.split('|').map(uses).collect();
            let members: Vec<&Pod> = members.iter().collect();
            let others = uses(others);
            let mut resolved = vec![PodConstraints::default(); members.len()];
            add_attachments(&"gang".into(), &members, &[&others], &lister(), &mut resolved);
            let short = |resolved: &PodConstraints| {
                let one = |(kind, amount): (&TokenKind, &u64)| match kind {
                    TokenKind::SharedVolumeAttachment { .. } => format!("shares {amount}"),
                    _ => amount.to_string(),
                };
                resolved.tokens.iter().map(one).collect::<Vec<_>>().join(" ")
            };
            let got: Vec<String> = resolved.iter().map(short).collect();
            assert_eq!(got, expected);
            assert!(resolved[0].tokens.is_empty() || text(&resolved[0]).contains(words));
        }
    }

    #[test]
    fn attach_limits_follow_the_csi_node() {
        let node = json!({"spec": {"drivers": [
            {"name": "disks", "nodeID": "a", "allocatable": {"count": 2}},
            {"name": "files", "nodeID": "a"},
        ]}});
        let node: DynamicObject = serde_json::from_value(node).expect("a CSINode");
        let mut limits = AttachLimits::default();
        assert!(limits.update(&"a".into(), Some(&node)));
        assert!(!limits.update(&"a".into(), Some(&node)), "nothing new");
        assert_eq!(limits.limit("a", "disks"), Some(2));
        assert_eq!((limits.limit("a", "files"), limits.limit("b", "disks")), (None, None));
        assert!(limits.has_limit("disks") && !limits.has_limit("files"));
        assert!(limits.update(&"a".into(), None) && !limits.has_limit("disks"));
    }
}
