//! ProvisioningRequests: room that somebody asks for before there are pods to fill it.
//!
//! The kind is `autoscaling.x-k8s.io/v1`. A request names templates of pods and how many of each; whoever serves its
//! class gets the room and says so in its conditions. Templates are objects of their own, and are read when they are
//! there. Only what is said is read here: who serves whom, and what becomes of it, is the host's.

use std::collections::BTreeMap;

use muster_core::time::Span;
use serde_json::Value;

use crate::foreign::json::{Findings, Json};
use crate::workloads::kind::WorkloadRole;

/// The class that Muster serves.
pub const CLASS: &str = "gang.muster.sh";

/// What pods say that come to take the room of a request: its name, today and formerly.
const CONSUMES: [&str; 2] = [
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
];
/// For how many seconds a request is worth serving.
const VALID: &str = "ValidUntilSeconds";

/// Pods of one template that a request asks room for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodSet {
    /// The template's name, in the request's namespace.
    pub template: String,
    /// How many.
    pub count: u32,
}

/// What a request asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Room for these, all together.
    pub pod_sets: Vec<PodSet>,
    /// After how long nobody wants it any more.
    pub valid_for: Option<Span>,
}

/// The class of a request.
pub fn class_of(request: &Value) -> Option<&str> {
    request.pointer("/spec/provisioningClassName")?.as_str()
}

/// The request whose room a pod comes to take.
pub fn consumes(annotations: &BTreeMap<String, String>) -> Option<&str> {
    let names = CONSUMES.iter().filter_map(|key| annotations.get(*key));
    names.map(String::as_str).find(|name| !name.is_empty())
}

/// What a request asks for, or what is wrong with it.
///
/// # Errors
/// With a finding for every field that cannot be used.
pub fn asked(request: &Value) -> Result<Asked, Vec<String>> {
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
    findings.settle(Asked { pod_sets, valid_for })
}

/// A year: whoever waits longer does not care.
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

/// Pods of a template, given the PodTemplate object, as a role of a gang.
///
/// # Errors
/// With a finding for every field that cannot be used.
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
    fn what_is_asked_for_is_read() {
        let sets = json!([{"podTemplateRef": {"name": "a"}, "count": 4}, {"podTemplateRef": {"name": "b"}, "count": 1}]);
        let read = request(&sets, &json!({"ValidUntilSeconds": "90", "other": "x"}));
        assert_eq!(class_of(&read), Some("gang.muster.sh"));
        let asked = asked(&read).expect("a good request");
        let sets: Vec<(&str, u32)> =
            asked.pod_sets.iter().map(|set| (&*set.template, set.count)).collect();
        assert_eq!(sets, [("a", 4), ("b", 1)]);
        assert_eq!(asked.valid_for, Some(Span::secs(90)));
    }

    #[test]
    fn what_cannot_be_served_is_said() {
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
            assert_eq!(asked(&request(&sets, &parameters)), Err(vec![finding.to_owned()]));
        }
    }

    #[test]
    fn a_template_is_read_as_a_pod_is() {
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
    fn pods_say_whose_room_they_take_in_old_words_and_new() {
        for key in CONSUMES {
            let marks = BTreeMap::from([(key.to_owned(), "train".to_owned())]);
            assert_eq!(consumes(&marks), Some("train"));
        }
        assert_eq!(consumes(&BTreeMap::new()), None);
    }
}
