//! Which fields of an object are kept.
//!
//! A mask is written as the paths of the fields that are read: `spec.template` keeps all of the template, a path goes through
//! lists, `*` stands for every name, `@pod` for a pod template, and `@none` keeps that a field is present without its value.

use std::collections::BTreeMap;

use crate::objects::metadata::FIELDS;

/// What is kept of a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mask {
    /// All of it.
    Whole,
    /// That it is present, without its value.
    Nothing,
    /// All of it, as JSON text: parsed when it is used.
    Text,
    /// The annotations that are read.
    Annotations,
    /// All of it, and not counted for the size limit of the object: Muster itself has written it.
    Uncounted,
    /// These of its fields.
    Fields(Fields),
}

/// The fields of a mapping that are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fields {
    named: BTreeMap<&'static str, Mask>,
    /// Whether fields that are not named are kept whole.
    others: bool,
}

impl Fields {
    /// The mask of a field; none if the field is dropped.
    pub(crate) fn of(&self, name: &str) -> Option<&Mask> {
        let named = self.named.get(name).or_else(|| self.named.get("*"));
        named.or_else(|| self.others.then_some(&Mask::Whole))
    }
}

/// The paths of a pod template, or of a pod, that are read.
const POD: &[&str] = &[
    "metadata.labels",
    "metadata.annotations.@annotations",
    "spec.containers.name",
    "spec.containers.resources.requests",
    "spec.containers.resources.limits",
    "spec.containers.ports.containerPort",
    "spec.containers.ports.hostPort",
    "spec.containers.ports.hostIP",
    "spec.containers.ports.protocol",
    "spec.containers.restartPolicy",
    "spec.initContainers.name",
    "spec.initContainers.resources.requests",
    "spec.initContainers.resources.limits",
    "spec.initContainers.ports.containerPort",
    "spec.initContainers.ports.hostPort",
    "spec.initContainers.ports.hostIP",
    "spec.initContainers.ports.protocol",
    "spec.initContainers.restartPolicy",
    "spec.resources.requests",
    "spec.resources.limits",
    "spec.overhead",
    "spec.nodeName",
    "spec.nodeSelector",
    "spec.affinity",
    "spec.tolerations",
    "spec.topologySpreadConstraints",
    "spec.priorityClassName",
    "spec.priority",
    "spec.preemptionPolicy",
    "spec.schedulerName",
    "spec.schedulingGates.name",
    "spec.schedulingGroup.podGroupName",
    "spec.workloadRef.name",
    "spec.workloadRef.podGroup",
    "spec.workloadRef.podGroupReplicaKey",
    "spec.volumes.name",
    "spec.volumes.persistentVolumeClaim.claimName",
    "spec.volumes.ephemeral.@none",
    "spec.resourceClaims.name",
    "spec.resourceClaims.resourceClaimName",
    "spec.resourceClaims.resourceClaimTemplateName",
    "spec.terminationGracePeriodSeconds",
    "spec.restartPolicy",
];

impl Mask {
    /// A mask of the metadata of every object, and of these paths.
    pub(crate) fn of(paths: &[&'static str]) -> Self {
        let mut fields = Fields::default();
        for name in FIELDS {
            let metadata = fields.below("metadata");
            let kept = if name == "annotations" { Self::Annotations } else { Self::Whole };
            metadata.named.insert(name, kept);
        }
        for name in ["apiVersion", "kind"] {
            fields.named.insert(name, Self::Whole);
        }
        paths.iter().for_each(|path| fields.add(path));
        Self::Fields(fields)
    }
}

impl Fields {
    fn below(&mut self, name: &'static str) -> &mut Self {
        let below = self.named.entry(name).or_insert_with(|| Mask::Fields(Self::default()));
        if !matches!(below, Mask::Fields(_)) {
            *below = Mask::Fields(Self { others: true, ..Self::default() });
        }
        match below {
            Mask::Fields(fields) => fields,
            _ => unreachable!("just made"),
        }
    }

    fn add(&mut self, path: &'static str) {
        let (first, rest) = match path.split_once('.') {
            None => return drop(self.named.insert(path, Mask::Whole)),
            Some(split) => split,
        };
        let special = match rest {
            "@none" => Some(Mask::Nothing),
            "@text" => Some(Mask::Text),
            "@uncounted" => Some(Mask::Uncounted),
            "@annotations" => Some(Mask::Annotations),
            "@pod" => {
                let below = self.below(first);
                POD.iter().for_each(|path| below.add(path));
                return;
            }
            _ => None,
        };
        match special {
            Some(mask) => drop(self.named.insert(first, mask)),
            None => self.below(first).add(rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::objects::field_mask::*;

    fn at<'a>(mask: &'a Mask, path: &str) -> Option<&'a Mask> {
        path.split('.').try_fold(mask, |mask, name| match mask {
            Mask::Fields(fields) => fields.of(name),
            _ => None,
        })
    }

    #[test]
    fn fields_without_a_path_are_dropped() {
        let mask = Mask::of(&["spec.size", "spec.groups.*.template.@pod", "status.@uncounted"]);
        assert_eq!(at(&mask, "spec.size"), Some(&Mask::Whole));
        assert_eq!(at(&mask, "spec.junk"), None);
        assert_eq!(at(&mask, "spec.groups.any.template.spec.affinity"), Some(&Mask::Whole));
        assert_eq!(at(&mask, "spec.groups.any.template.spec.containers.env"), None);
        assert_eq!(at(&mask, "metadata.managedFields"), None);
        assert_eq!(at(&mask, "metadata.annotations"), Some(&Mask::Annotations));
        assert_eq!(at(&mask, "status"), Some(&Mask::Uncounted));
    }

    #[test]
    fn path_below_a_whole_field_leaves_its_other_fields_whole() {
        let mask = Mask::of(&["spec", "spec.roles", "spec.roles.template.@text"]);
        assert_eq!(at(&mask, "spec.queue"), Some(&Mask::Whole));
        assert_eq!(at(&mask, "spec.roles.min"), Some(&Mask::Whole));
        assert_eq!(at(&mask, "spec.roles.template"), Some(&Mask::Text));
    }
}
