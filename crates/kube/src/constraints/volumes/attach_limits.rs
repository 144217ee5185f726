//! How many volumes a node can attach: what its CSINode says of each driver, and what is attached there.
//!
//! A volume counts once on a node, however many pods there use it. Those that one pod has for itself are tokens, of which
//! each takes as many as it has. Those that members share count on each node where one of them is, so they cannot be
//! taken by anybody: a gang that has such volumes has a token of its own, of which a node has what is left beside them and
//! beside everything that others have there. What that comes to is looked at again before the gang is admitted.
//!
//! Volumes are told apart by their claims. Deliberately not here: volumes of drivers that are part of Kubernetes itself,
//! volumes that a pod describes in place, and volumes that are still attached although nobody uses them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::api::DynamicObject;
use serde_json::Value;

use crate::cache::store::Key;
use crate::constraints::cluster_view::namespace;
use crate::constraints::pod_constraints::{Attaches, PodConstraints};
use crate::constraints::tokens::Meaning;
use crate::constraints::volumes::claims::{
    Claim, Store, claims, class_of, is_by_hand, stands, text,
};
use crate::objects::pod::Pod;

/// Room for members beside what they attach, so that those who attach nothing of their own are told from nobody.
pub(crate) const MEMBERS: u64 = 1_000;

/// How many volumes of each driver nodes can attach. Those that do not say attach any number.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    of_node: BTreeMap<Key, BTreeMap<Arc<str>, u64>>,
}

impl Limits {
    /// Takes a CSINode in. Whether it says something else than before.
    pub(crate) fn take(&mut self, node: &Key, is: Option<&DynamicObject>) -> bool {
        let limits = is.map(read).unwrap_or_default();
        let was = match limits.is_empty() {
            true => self.of_node.remove(node),
            false => self.of_node.insert(node.clone(), limits.clone()),
        };
        was.unwrap_or_default() != limits
    }

    pub(crate) fn of(&self, node: &str, driver: &str) -> Option<u64> {
        self.of_node.get(node)?.get(driver).copied()
    }

    pub(crate) fn is_limited(&self, driver: &str) -> bool {
        self.of_node.values().any(|drivers| drivers.contains_key(driver))
    }

    pub(crate) fn has(&self, node: &str) -> bool {
        self.of_node.contains_key(node)
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

/// The claims of a pod that a driver attaches, by driver.
pub(crate) fn attached(pod: &Pod, store: &impl Store) -> BTreeMap<Arc<str>, BTreeSet<String>> {
    let mut attached: BTreeMap<Arc<str>, BTreeSet<String>> = BTreeMap::new();
    for name in claims(pod) {
        let Some(claim) = store.claim(namespace(pod), &name) else { continue };
        let driver = match stands(claim, store) {
            Claim::Has(volume) | Claim::Keeps(volume) => {
                store.volume(volume).and_then(|volume| text(&volume.data, "/spec/csi/driver"))
            }
            Claim::WaitsForPod(_) | Claim::WaitsForVolume => {
                let class = class_of(claim, store).filter(|class| !is_by_hand(class));
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

/// Counts what members attach. Others that are somewhere are looked at by who shares volumes with the gang.
pub(crate) fn attach(
    gang: &Arc<str>,
    members: &[&Pod],
    others: &[&Pod],
    store: &impl Store,
    tied: &mut [PodConstraints],
) {
    let each: Vec<_> = members.iter().map(|pod| attached(pod, store)).collect();
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
    for (all, tied) in each.iter().zip(&mut *tied) {
        for (driver, claims) in all {
            let (own, shared) = claims.iter().cloned().partition(|claim| users[claim] == 1);
            tied.attaches.insert(driver.clone(), Attaches { own, shared });
        }
    }
    let sharing = each.iter().flatten().filter(|(_, all)| all.iter().any(|one| users[one] > 1));
    let sharing: BTreeSet<&Arc<str>> = sharing.map(|(driver, _)| driver).collect();
    for tied in tied {
        for (driver, Attaches { own, .. }) in tied.attaches.clone() {
            if !store.is_limited(&driver) {
                continue;
            }
            let own = own.len() as u64;
            if own > 0 {
                tied.take(Meaning::Attached(driver.clone()), own);
            }
            if sharing.contains(&driver) {
                let meaning = Meaning::AttachedTo { gang: gang.clone(), driver };
                tied.take(meaning, own * MEMBERS + 1);
            }
        }
    }
}

/// What a gang whose members share volumes has of a node that attaches so many more, once those are there.
pub(crate) fn left_for_sharers(left: Option<u64>) -> u64 {
    left.map_or(0, |left| left * MEMBERS + (MEMBERS - 1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::constraints::cluster_view::play::{pod, text};
    use crate::constraints::volumes::attach_limits::*;
    use crate::constraints::volumes::lister::play::Shop;

    fn shop() -> Shop {
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
        Shop {
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
            ..Shop::default()
        }
    }

    fn uses(claims: &str) -> Pod {
        let volume =
            |name: &str| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
        let volumes: Vec<Value> = claims.split_whitespace().map(volume).collect();
        pod("db", &json!({"volumes": volumes}))
    }

    #[test]
    fn what_one_member_has_is_taken_and_what_several_share_is_left_room_for() {
        let words = "a node that can attach their volumes of disks";
        // Claims of members and of others, and what members take.
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
            let mut tied = vec![PodConstraints::default(); members.len()];
            attach(&"gang".into(), &members, &[&others], &shop(), &mut tied);
            let short = |tied: &PodConstraints| {
                let one = |(meaning, amount): (&Meaning, &u64)| match meaning {
                    Meaning::AttachedTo { .. } => format!("shares {amount}"),
                    _ => amount.to_string(),
                };
                tied.takes.iter().map(one).collect::<Vec<_>>().join(" ")
            };
            let got: Vec<String> = tied.iter().map(short).collect();
            assert_eq!(got, expected);
            assert!(tied[0].takes.is_empty() || text(&tied[0]).contains(words));
        }
    }

    #[test]
    fn a_node_says_what_it_can_attach() {
        let node = json!({"spec": {"drivers": [
            {"name": "disks", "nodeID": "a", "allocatable": {"count": 2}},
            {"name": "files", "nodeID": "a"},
        ]}});
        let node: DynamicObject = serde_json::from_value(node).expect("a CSINode");
        let mut limits = Limits::default();
        assert!(limits.take(&"a".into(), Some(&node)));
        assert!(!limits.take(&"a".into(), Some(&node)), "nothing new");
        assert_eq!(limits.of("a", "disks"), Some(2));
        assert_eq!((limits.of("a", "files"), limits.of("b", "disks")), (None, None));
        assert!(limits.is_limited("disks") && !limits.is_limited("files"));
        assert!(limits.take(&"a".into(), None) && !limits.is_limited("disks"));
    }
}
