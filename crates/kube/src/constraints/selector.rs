//! Pod selectors of affinity terms and spread rules: label selector, namespaces and namespace selector.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use muster_api::pod::{
    LabelSelector, LabelSelectorRequirement, PodAffinityTerm, TopologySpreadConstraint,
};

pub(crate) type Labels = BTreeMap<String, String>;

/// The labels of each known namespace.
pub(crate) type NamespaceLabels<'a> = BTreeMap<&'a str, &'a Labels>;

/// Selects pods by their labels and namespaces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PodSelector {
    selector: LabelSelector,
    namespaces: BTreeSet<String>,
    /// Selects more namespaces by their labels.
    namespace_selector: Option<LabelSelector>,
}

impl PodSelector {
    /// The selector of a pod's affinity term; `None`, which matches no pod, when the term has no label selector.
    pub(crate) fn of_term(
        term: &PodAffinityTerm,
        namespace: &str,
        labels: &Labels,
    ) -> Option<Self> {
        let mut selector = term.label_selector.clone()?;
        add_label_keys(&mut selector, &term.match_label_keys, "In", labels);
        add_label_keys(&mut selector, &term.mismatch_label_keys, "NotIn", labels);
        let mut namespaces: BTreeSet<String> = term.namespaces.iter().cloned().collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.insert(namespace.to_owned());
        }
        Some(Self { selector, namespaces, namespace_selector: term.namespace_selector.clone() })
    }

    /// The selector of a pod's spread rule; `None`, which matches no pod, when the rule has no label selector.
    pub(crate) fn of_spread_rule(
        rule: &TopologySpreadConstraint,
        namespace: &str,
        labels: &Labels,
    ) -> Option<Self> {
        let mut selector = rule.label_selector.clone()?;
        add_label_keys(&mut selector, &rule.match_label_keys, "In", labels);
        let namespaces = BTreeSet::from([namespace.to_owned()]);
        Some(Self { selector, namespaces, namespace_selector: None })
    }

    /// The namespaces and labels that all matching pods have; `None` when namespaces are selected by their labels, or
    /// when no label must have one given value.
    pub(crate) fn namespaces_and_labels(&self) -> Option<(&BTreeSet<String>, &Labels)> {
        let match_labels = &self.selector.match_labels;
        (self.namespace_selector.is_none() && !match_labels.is_empty())
            .then_some((&self.namespaces, match_labels))
    }

    /// Whether it matches a pod with these labels in this namespace.
    pub(crate) fn matches(
        &self,
        namespace: &str,
        labels: &Labels,
        namespace_labels: &NamespaceLabels<'_>,
    ) -> bool {
        static NONE: Labels = Labels::new();
        let namespace_selector = |selector: &LabelSelector| {
            selector.matches(namespace_labels.get(namespace).copied().unwrap_or(&NONE))
        };
        (self.namespaces.contains(namespace)
            || self.namespace_selector.as_ref().is_some_and(namespace_selector))
            && self.selector.matches(labels)
    }
}

/// Adds `matchLabelKeys` (`In`) or `mismatchLabelKeys` (`NotIn`) with the values of the pod's own labels; keys that the
/// pod does not have are skipped.
pub(crate) fn add_label_keys(
    selector: &mut LabelSelector,
    keys: &[String],
    operator: &str,
    labels: &Labels,
) {
    for key in keys {
        let Some(value) = labels.get(key) else { continue };
        let more = LabelSelectorRequirement {
            key: key.clone(),
            operator: operator.to_owned(),
            values: vec![value.clone()],
        };
        // Newer API servers have merged it into the selector already.
        if !selector.match_expressions.contains(&more) {
            selector.match_expressions.push(more);
        }
    }
}

impl fmt::Display for PodSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pods with {}", describe(&self.selector))?;
        let named: Vec<&str> = self.namespaces.iter().map(String::as_str).collect();
        match (&self.namespace_selector, named.is_empty()) {
            (None, _) => write!(f, " in {}", named.join(", ")),
            (Some(by), true) => write!(f, " in namespaces with {}", describe(by)),
            (Some(by), false) => {
                write!(f, " in {} and namespaces with {}", named.join(", "), describe(by))
            }
        }
    }
}

/// A selector in the syntax of `kubectl get --selector`.
pub(crate) fn describe(selector: &LabelSelector) -> String {
    let equal = selector.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
    let compared = selector.match_expressions.iter().map(|one| {
        let (key, values) = (&one.key, one.values.join("|"));
        match one.operator.as_str() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.clone(),
            "DoesNotExist" => format!("!{key}"),
            other => format!("{key} {other} ({values})"),
        }
    });
    let all: Vec<String> = equal.chain(compared).collect();
    if all.is_empty() { "any labels".to_owned() } else { all.join(",") }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::constraints::selector::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn terms_select_pods_by_labels_and_namespaces() {
        let own = labels(&[("app", "db"), ("hash", "1")]);
        let team = labels(&[("team", "a")]);
        let none = labels(&[]);
        let namespace_labels = NamespaceLabels::from([("here", &none), ("there", &team)]);
        let db = json!({"matchLabels": {"app": "db"}});
        // The term, and whether it matches the same pod here, there, and a pod with another hash here.
        let cases: [(Value, [bool; 3], &str); 7] = [
            (json!({}), [false, false, false], "none"),
            (json!({"labelSelector": db}), [true, false, true], "pods with app=db in here"),
            (
                json!({"labelSelector": db, "namespaces": ["there"]}),
                [false, true, false],
                "pods with app=db in there",
            ),
            (
                json!({"labelSelector": db, "namespaceSelector": {}}),
                [true, true, true],
                "pods with app=db in namespaces with any labels",
            ),
            (
                json!({"labelSelector": db, "namespaceSelector": {"matchLabels": {"team": "a"}}}),
                [false, true, false],
                "pods with app=db in namespaces with team=a",
            ),
            (
                json!({"labelSelector": db, "matchLabelKeys": ["hash"]}),
                [true, false, false],
                "pods with app=db,hash in (1) in here",
            ),
            (
                json!({"labelSelector": db, "mismatchLabelKeys": ["hash"]}),
                [false, false, true],
                "pods with app=db,hash notin (1) in here",
            ),
        ];
        let other = labels(&[("app", "db"), ("hash", "2")]);
        for (term, about, words) in cases {
            let read: PodAffinityTerm = serde_json::from_value(term.clone()).expect("a term");
            let selector = PodSelector::of_term(&read, "here", &own);
            let has = |namespace: &str, labels: &Labels| {
                selector
                    .as_ref()
                    .is_some_and(|selector| selector.matches(namespace, labels, &namespace_labels))
            };
            let got = [has("here", &own), has("there", &own), has("here", &other)];
            assert_eq!(got, about, "{term}");
            assert_eq!(selector.map_or("none".to_owned(), |selector| selector.to_string()), words);
        }
    }
}
