//! ProvisioningRequests: requests for capacity before the pods that will use it exist.
//!
//! The kind is `autoscaling.x-k8s.io/v1`. A request names pod templates and the number of pods of each; the server of
//! its class provides the capacity and reports it in its conditions. Templates are objects of their own, and are read
//! when they exist. This module only parses requests; the host decides which ones to serve, and what happens to them.

use std::collections::BTreeMap;

use muster_core::time::Span;
use serde_json::Value;

use crate::foreign::json::{Findings, Json};
use crate::workloads::kind::WorkloadRole;

/// The class that Muster serves.
pub const CLASS: &str = "gang.muster.sh";

/// The annotation of pods that consume the capacity of a request, with the request's name; the current key and the
/// former one.
const CONSUMES: [&str; 2] = [
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
];
/// The parameter that gives the number of seconds for which a request is valid.
const VALID: &str = "ValidUntilSeconds";

/// Pods of one template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodSet {
    /// The template's name, in the request's namespace.
    pub template: String,
    /// The number of pods.
    pub count: u32,
}

/// The content of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestSpec {
    /// Pods for which capacity is requested, all together.
    pub pod_sets: Vec<PodSet>,
    /// How long the request is valid.
    pub valid_for: Option<Span>,
}

/// The class of a request.
pub fn class_of(request: &Value) -> Option<&str> {
    request.pointer("/spec/provisioningClassName")?.as_str()
}

/// The request whose capacity a pod consumes.
pub fn consumes(annotations: &BTreeMap<String, String>) -> Option<&str> {
    let names = CONSUMES.iter().filter_map(|key| annotations.get(*key));
    names.map(String::as_str).find(|name| !name.is_empty())
}

/// Parses a request.
///
/// # Errors
/// A finding for every invalid field.
pub fn parse_request(request: &Value) -> Result<RequestSpec, Vec<String>> {
    let findings = Findings::default();
    let root = Json::root(request, &findings);
    let spec = root.need("spec");
    let sets = spec.as_ref().map(|spec| spec.list("podSets")).unwrap_or_default();
    if let Some(spec) = spec.as_ref().filter(|_| sets.is_empty()) {
        findings.push(&spec.path_of("podSets"), "must name one template at least");
    }
    let pod_sets = sets.iter().filter_map(pod_set).collect();
    let parameters = spec.map(|spec| spec.texts("parameters")).unwrap_or_default();
    let valid_for = parameters.get(VALID).and_then(|text| {
        let seconds = text.parse().ok().filter(|seconds| (1..=MAX_SECONDS).contains(seconds));
        if seconds.is_none() {
            let field = format!("spec.parameters.{VALID}");
            findings.push(&field, format!("must be a number of seconds, not `{text}`"));
        }
        seconds.map(Span::secs)
    });
    findings.settle(RequestSpec { pod_sets, valid_for })
}

/// The longest validity: a year.
const MAX_SECONDS: u64 = 365 * 24 * 3_600;

fn pod_set(set: &Json<'_>) -> Option<PodSet> {
    let template = set.need("podTemplateRef").and_then(|at| {
        let name = at.text("name");
        if name.is_none() {
            at.missing("name");
        }
        name
    });
    let count = set.need("count").and_then(|_| set.count("count"));
    if count == Some(0) {
        set.findings().push(&set.path_of("count"), "must be 1 at least");
    }
    Some(PodSet { template: template?.to_owned(), count: count? })
}

/// A pod set with its PodTemplate object as a role of a gang.
///
/// # Errors
/// A finding for every invalid field.
pub fn role(set: &PodSet, pod_template: &Value) -> Result<WorkloadRole, Vec<String>> {
    let findings = Findings::default();
    let object = Json::root(pod_template, &findings);
    let role = crate::workloads::template::role(&set.template, set.count, &object, "template");
    match findings.settle(role)? {
        Some(role) => Ok(role),
        None => Err(vec![format!("PodTemplate {}: has no template", set.template)]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::provisioning::*;

    fn request(sets: &Value, parameters: &Value) -> Value {
        json!({"spec": {"provisioningClassName": CLASS, "podSets": sets, "parameters": parameters}})
    }

    #[test]
    fn request_is_parsed() {
        let sets = json!([{"podTemplateRef": {"name": "a"}, "count": 4}, {"podTemplateRef": {"name": "b"}, "count": 1}]);
        let read = request(&sets, &json!({"ValidUntilSeconds": "90", "other": "x"}));
        assert_eq!(class_of(&read), Some("gang.muster.sh"));
        let parsed = parse_request(&read).expect("a good request");
        let sets: Vec<(&str, u32)> =
            parsed.pod_sets.iter().map(|set| (&*set.template, set.count)).collect();
        assert_eq!(sets, [("a", 4), ("b", 1)]);
        assert_eq!(parsed.valid_for, Some(Span::secs(90)));
    }

    #[test]
    fn invalid_requests_are_reported() {
        let cases = [
            (json!([]), json!({}), "spec.podSets: must name one template at least"),
            (
                json!([{"podTemplateRef": {"name": "a"}, "count": 0}]),
                json!({}),
                "spec.podSets[0].count: must be 1 at least",
            ),
            (json!([{"count": 1}]), json!({}), "spec.podSets[0].podTemplateRef: is missing"),
            (
                json!([{"podTemplateRef": {}, "count": 1}]),
                json!({}),
                "spec.podSets[0].podTemplateRef.name: is missing",
            ),
            (
                json!([{"podTemplateRef": {"name": "a"}, "count": 1}]),
                json!({"ValidUntilSeconds": "soon"}),
                "spec.parameters.ValidUntilSeconds: must be a number of seconds, not `soon`",
            ),
        ];
        for (sets, parameters, finding) in cases {
            assert_eq!(parse_request(&request(&sets, &parameters)), Err(vec![finding.to_owned()]));
        }
    }

    #[test]
    fn pod_template_is_parsed_like_a_pod() {
        let set = PodSet { template: "a".to_owned(), count: 2 };
        let role = |template: Value| role(&set, &json!({"template": template}));
        let good = role(
            json!({"metadata": {"labels": {"muster.sh/queue": "q"}}, "spec": {"priorityClassName": "high"}}),
        );
        let good = good.expect("a good template");
        assert_eq!((&*good.name, good.count), ("a", 2));
        assert_eq!(good.labels["muster.sh/queue"], "q");
        assert!(role(json!({"spec": {"containers": 7}})).is_err());
        assert_eq!(role(json!({})), Err(vec!["template.spec: is missing".to_owned()]));
    }

    #[test]
    fn pods_name_their_request_under_the_old_key_and_the_new() {
        for key in CONSUMES {
            let marks = BTreeMap::from([(key.to_owned(), "train".to_owned())]);
            assert_eq!(consumes(&marks), Some("train"));
        }
        assert_eq!(consumes(&BTreeMap::new()), None);
    }
}
