//! Which pods a term is about.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use muster_api::pod::{LabelExpression, LabelSelector, PodTerm, SpreadConstraint};

pub(crate) type Marks = BTreeMap<String, String>;

/// Labels of namespaces, as far as they are known.
pub(crate) type Spaces<'a> = BTreeMap<&'a str, &'a Marks>;

/// Pods by their labels and where they live.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PodSelector {
    selector: LabelSelector,
    namespaces: BTreeSet<String>,
    /// Namespaces by their labels, besides those that are named.
    by_labels: Option<LabelSelector>,
}

impl PodSelector {
    /// Whom a term of a pod is about; nobody when it has no selector.
    pub(crate) fn of(term: &PodTerm, namespace: &str, labels: &Marks) -> Option<Self> {
        let mut selector = term.label_selector.clone()?;
        add_keys(&mut selector, &term.match_label_keys, "In", labels);
        add_keys(&mut selector, &term.mismatch_label_keys, "NotIn", labels);
        let mut namespaces: BTreeSet<String> = term.namespaces.iter().cloned().collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.insert(namespace.to_owned());
        }
        Some(Self { selector, namespaces, by_labels: term.namespace_selector.clone() })
    }

    /// Whom a pod is to be spread with; nobody when the rule has no selector.
    pub(crate) fn of_rule(
        rule: &SpreadConstraint,
        namespace: &str,
        labels: &Marks,
    ) -> Option<Self> {
        let mut selector = rule.label_selector.clone()?;
        add_keys(&mut selector, &rule.match_label_keys, "In", labels);
        let namespaces = BTreeSet::from([namespace.to_owned()]);
        Some(Self { selector, namespaces, by_labels: None })
    }

    /// Namespaces and labels of all pods that it is about; none when there are no such labels.
    pub(crate) fn narrow(&self) -> Option<(&BTreeSet<String>, &Marks)> {
        let marks = &self.selector.match_labels;
        (self.by_labels.is_none() && !marks.is_empty()).then_some((&self.namespaces, marks))
    }

    /// Whether it is about a pod with these labels.
    pub(crate) fn has(&self, namespace: &str, labels: &Marks, spaces: &Spaces<'_>) -> bool {
        static NONE: Marks = Marks::new();
        let by_labels = |selector: &LabelSelector| {
            selector.matches(spaces.get(namespace).copied().unwrap_or(&NONE))
        };
        (self.namespaces.contains(namespace) || self.by_labels.as_ref().is_some_and(by_labels))
            && self.selector.matches(labels)
    }
}

/// Labels that must be as the pod's own are, or must not: those it has.
pub(crate) fn add_keys(
    selector: &mut LabelSelector,
    keys: &[String],
    operator: &str,
    labels: &Marks,
) {
    for key in keys {
        let Some(value) = labels.get(key) else { continue };
        let more = LabelExpression {
            key: key.clone(),
            operator: operator.to_owned(),
            values: vec![value.clone()],
        };
        // Newer servers have written it there already.
        if !selector.match_expressions.contains(&more) {
            selector.match_expressions.push(more);
        }
    }
}

impl fmt::Display for PodSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pods with {}", in_words(&self.selector))?;
        let named: Vec<&str> = self.namespaces.iter().map(String::as_str).collect();
        match (&self.by_labels, named.is_empty()) {
            (None, _) => write!(f, " in {}", named.join(", ")),
            (Some(by), true) => write!(f, " in namespaces with {}", in_words(by)),
            (Some(by), false) => {
                write!(f, " in {} and namespaces with {}", named.join(", "), in_words(by))
            }
        }
    }
}

/// A selector as one would type it.
pub(crate) fn in_words(selector: &LabelSelector) -> String {
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

    fn marks(pairs: &[(&str, &str)]) -> Marks {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn terms_are_about_pods_in_namespaces() {
        let own = marks(&[("app", "db"), ("hash", "1")]);
        let team = marks(&[("team", "a")]);
        let none = marks(&[]);
        let spaces = Spaces::from([("here", &none), ("there", &team)]);
        let db = json!({"matchLabels": {"app": "db"}});
        // The term, and whether it is about the same pod here, there, and one of another hash here.
        let cases: [(Value, [bool; 3], &str); 7] = [
            (json!({}), [false, false, false], "nobody"),
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
        let other = marks(&[("app", "db"), ("hash", "2")]);
        for (term, about, words) in cases {
            let read: PodTerm = serde_json::from_value(term.clone()).expect("a term");
            let scope = PodSelector::of(&read, "here", &own);
            let has = |namespace: &str, labels: &Marks| {
                scope.as_ref().is_some_and(|scope| scope.has(namespace, labels, &spaces))
            };
            let got = [has("here", &own), has("there", &own), has("here", &other)];
            assert_eq!(got, about, "{term}");
            assert_eq!(scope.map_or("nobody".to_owned(), |scope| scope.to_string()), words);
        }
    }
}
