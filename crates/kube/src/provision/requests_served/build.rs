//! Builds the gang of a request: one role for each of its PodTemplates.

use std::collections::BTreeMap;

use kube::api::DynamicObject;
use muster_api::assemble::assemble;
use muster_api::dialects::{self, Dialect, Terms};
use muster_api::provisioning::{self, RequestSpec};
use muster_core::gang::GangSpec;
use serde_json::{Value, json};

use crate::cache::kinds::KindRole;
use crate::gang::identity::{BuiltGang, GangSource};
use crate::host::Host;
use crate::provision::requests_issued::request_object::request_scope;

/// Why no gang can be built of a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// Templates may be created after the request.
    #[error("PodTemplate {0} does not exist")]
    TemplateMissing(String),
    /// It is invalid for good: a request cannot be changed.
    #[error("{0}")]
    Invalid(String),
}

impl Host {
    /// Builds the gang of a request.
    pub(crate) fn build_request(&self, source: &GangSource) -> Result<BuiltGang, RequestError> {
        let invalid = |why: Vec<String>| RequestError::Invalid(why.join("; "));
        let GangSource::Request { namespace, .. } = source else {
            return Err(RequestError::Invalid(format!("{source} is no request")));
        };
        let capacity = self.request_spec(source).map_err(invalid)?;
        let mut terms = Terms::default();
        let mut roles = Vec::with_capacity(capacity.pod_sets.len());
        for set in &capacity.pod_sets {
            let template = self.object(KindRole::PodTemplate, namespace, &set.template);
            let template =
                template.ok_or_else(|| RequestError::TemplateMissing(set.template.clone()))?;
            let in_template = |why: Vec<String>| {
                RequestError::Invalid(format!("PodTemplate {}: {}", set.template, why.join("; ")))
            };
            let role = provisioning::role(set, &template.data).map_err(in_template)?;
            let by_pod = dialects::pod_terms(Dialect::Muster, &role.labels, &role.annotations);
            let class = role.template.priority_class_name.as_deref().map(Into::into);
            let by_spec = Terms {
                priority: role.template.priority,
                priority_class: class,
                ..Terms::default()
            };
            terms = terms.over(by_pod.map_err(in_template)?).over(by_spec);
            roles.push(role);
        }
        // A request is provisioned as a whole, whatever minimum the pods declare.
        terms.min = None;
        let name = source.gang_name();
        let assembled = assemble(&name, &terms, &[], Some(&roles), &self.config.gpus);
        let mut spec = assembled.map_err(|why| RequestError::Invalid(why.to_string()))?.spec;
        let members = spec.roles.iter().map(|role| u64::from(role.max));
        if let Some(why) = self.config.over_member_limit(members.sum()) {
            return Err(RequestError::Invalid(why));
        }
        self.apply_booking_terms(&mut spec, &terms);
        spec.user = self.user_of(source, None);
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

    /// A booking is not preemptible: it is promised, and lasts minutes.
    fn apply_booking_terms(&self, spec: &mut GangSpec, terms: &Terms) {
        spec.disruption.preemptible = false;
        // No admission controller has checked the template's pods, so the declared priority counts.
        spec.priority = self.priority_of(terms).unwrap_or_default();
        spec.priority_is_declared = true;
        spec.disruption.never_preempts |= self.never_preempts(&[], terms);
    }

    /// The capacity that a request asks for.
    pub(crate) fn request_spec(&self, source: &GangSource) -> Result<RequestSpec, Vec<String>> {
        let object = self.request(source).map(with_spec);
        provisioning::parse_request(&object.unwrap_or_default())
    }

    /// The object of a request, if Muster serves it.
    pub(crate) fn request(&self, source: &GangSource) -> Option<&DynamicObject> {
        let GangSource::Request { namespace, name } = source else { return None };
        let object = self.object(KindRole::Request, namespace, name)?;
        is_served(object).then_some(&**object)
    }
}

/// Whether a request is of Muster's class and not being deleted. Muster never serves requests that it issued itself.
pub(crate) fn is_served(object: &DynamicObject) -> bool {
    object.metadata.deletion_timestamp.is_none()
        && request_scope(object).is_none()
        && provisioning::class_of(&object.data) == Some(provisioning::CLASS)
}

fn with_spec(object: &DynamicObject) -> Value {
    json!({"spec": object.data.get("spec").cloned().unwrap_or_default()})
}
