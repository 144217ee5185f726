//! Requests become gangs: a role for each of their templates.

use std::collections::BTreeMap;

use kube::api::DynamicObject;
use muster_api::assemble::assemble;
use muster_api::dialects::{self, Dialect, Terms};
use muster_api::provisioning::{self, Asked};
use muster_core::gang::GangSpec;
use serde_json::{Value, json};

use crate::cache::kinds::KindRole;
use crate::gang::identity::{BuiltGang, GangSource};
use crate::host::Host;
use crate::provision::requests_issued::request_object::asked;

/// Why a request is no gang.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// Its templates are made after it, and may still come.
    #[error("PodTemplate {0} does not exist")]
    NoTemplate(String),
    /// It makes no sense, and never will: it cannot be changed.
    #[error("{0}")]
    Wrong(String),
}

impl Host {
    /// The gang of a request.
    pub(crate) fn build_request(&self, origin: &GangSource) -> Result<BuiltGang, Unread> {
        let wrong = |why: Vec<String>| Unread::Wrong(why.join("; "));
        let GangSource::Request { namespace, .. } = origin else {
            return Err(Unread::Wrong(format!("{origin} is no request")));
        };
        let asked = self.asked_by(origin).map_err(wrong)?;
        let mut terms = Terms::default();
        let mut roles = Vec::with_capacity(asked.pod_sets.len());
        for set in &asked.pod_sets {
            let template = self.object(KindRole::PodTemplate, namespace, &set.template);
            let template = template.ok_or_else(|| Unread::NoTemplate(set.template.clone()))?;
            let named = |why: Vec<String>| {
                Unread::Wrong(format!("PodTemplate {}: {}", set.template, why.join("; ")))
            };
            let role = provisioning::role(set, &template.data).map_err(named)?;
            let said = dialects::pod_terms(Dialect::Muster, &role.labels, &role.annotations);
            let class = role.template.priority_class_name.as_deref().map(Into::into);
            let by_spec = Terms {
                priority: role.template.priority,
                priority_class: class,
                ..Terms::default()
            };
            terms = terms.over(said.map_err(named)?).over(by_spec);
            roles.push(role);
        }
        // All of it or nothing, whatever the pods would say of themselves.
        terms.min = None;
        let name = origin.gang_name();
        let assembled = assemble(&name, &terms, &[], Some(&roles), &self.config.gpus);
        let mut spec = assembled.map_err(|why| Unread::Wrong(why.to_string()))?.spec;
        let members = spec.roles.iter().map(|role| u64::from(role.max));
        if let Some(why) = self.config.over_member_limit(members.sum()) {
            return Err(Unread::Wrong(why));
        }
        self.complete(&mut spec, &terms);
        spec.user = self.user_of(origin, None);
        Ok(BuiltGang {
            spec,
            pod_roles: BTreeMap::new(),
            pod_ranks: BTreeMap::new(),
            pod_constraints: BTreeMap::new(),
            wait_reason: None,
            planned_from_template: false,
            missing_members: 0,
            wanted_members: Vec::new(),
            unsupported: Vec::new(),
        })
    }

    /// What is promised is not taken back for others' sake, and lasts minutes.
    fn complete(&self, spec: &mut GangSpec, terms: &Terms) {
        spec.disruption.preemptible = false;
        // No admission has seen the template's pods, so its priority is what its writer says.
        spec.priority = self.priority_of(terms).unwrap_or_default();
        spec.priority_is_declared = true;
        spec.disruption.gentle |= self.never_preempts(&[], terms);
    }

    /// What a request asks for.
    pub(crate) fn asked_by(&self, origin: &GangSource) -> Result<Asked, Vec<String>> {
        let object = self.request(origin).map(whole);
        provisioning::asked(&object.unwrap_or_default())
    }

    /// The object of a request, if it is Muster's to serve.
    pub(crate) fn request(&self, origin: &GangSource) -> Option<&DynamicObject> {
        let GangSource::Request { namespace, name } = origin else { return None };
        let object = self.object(KindRole::Request, namespace, name)?;
        is_served(object).then_some(&**object)
    }
}

/// Whether a request is of Muster's class, and still wanted. Muster never serves itself.
pub(crate) fn is_served(object: &DynamicObject) -> bool {
    object.metadata.deletion_timestamp.is_none()
        && asked(object).is_none()
        && provisioning::class_of(&object.data) == Some(provisioning::CLASS)
}

fn whole(object: &DynamicObject) -> Value {
    json!({"spec": object.data.get("spec").cloned().unwrap_or_default()})
}
