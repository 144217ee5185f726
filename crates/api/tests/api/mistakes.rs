//! One case per kind of error: the text, and the exact findings it gets. Gangs, queues and pools have their own files.

use crate::errors;

/// Each case is a text and its errors without the file's name.
pub(crate) fn check(cases: &[(&str, &[&str])]) {
    for (text, expected) in cases {
        let found = errors(text);
        let found: Vec<&str> =
            found.iter().filter_map(|line| line.strip_prefix("a.yaml:")).collect();
        assert_eq!(found, *expected, "in\n{text}");
    }
}

#[test]
fn envelopes() {
    check(&[
        (
            "kind: Gnag\n",
            &[
                "1:7: kind: `Gnag` is no kind Muster reads: it reads `Gang`, `Queue`, `Pool`, `Topology`, `Node`; did you mean `Gang`?",
            ],
        ),
        ("metadata: {name: g}\nspec: {}\n", &["1:1: kind: is missing"]),
        (
            "apiVersion: v1\nkind: Queue\nmetadata: {name: q}\nspec: {}\n",
            &["1:13: apiVersion: must be `muster.sh/v1alpha1`"],
        ),
        ("kind: Queue\nspec: {}\n", &["1:1: metadata: is missing"]),
        ("kind: Queue\nmetadata: {}\nspec: {}\n", &["2:1: metadata.name: is missing"]),
        ("kind: Queue\nmetadata: {name: q}\n", &["1:1: spec: is missing"]),
        ("kind: Queue\nmetadata: {name: q}\nspec:\n", &["3:1: spec: is missing"]),
        (
            "kind: Queue\nmetadata: {name: q, namespace: x}\nspec: {}\n",
            &["2:21: metadata.namespace: unknown field"],
        ),
        (
            "kind: Queue\nmetadata: {name: q}\nspec: {}\nstatus: {}\n",
            &["4:1: status: unknown field"],
        ),
        (
            "\"\": 1\nkind: Topology\nspec: {levels: [{name: a, label: b}]}\n",
            &["1:1: []: unknown field"],
        ),
        ("- a\n- b\n", &["1:1: (document): must be a mapping, not a list"]),
        ("just text\n", &["1:1: (document): must be a mapping, not `just text`"]),
        (
            "kind: Queue\nmetadata: {name: Big_One}\nspec: {}\n",
            &[
                "2:18: metadata.name: `Big_One` must be lower-case letters, digits, `-` and `.`, begin and end with a letter or digit, and be at most 253 long",
            ],
        ),
        (
            "kind: Queue\nmetadata: {name: 7}\nspec: {}\n",
            &["2:18: metadata.name: must be text, and YAML reads `7` as a number: write \"7\""],
        ),
    ]);
}

#[test]
fn yaml_itself() {
    check(&[
        ("kind: Queue\nspec: {a: 1\n", &["2:7: (file): not valid YAML: unclosed bracket '{'"]),
        (
            "a: b: c\n",
            &["1:5: (file): not valid YAML: mapping values are not allowed in this context"],
        ),
        (
            "kind: Queue\nkind: Pool\nmetadata: {name: q}\nspec: {}\n",
            &["2:1: kind: is given twice, first on line 1"],
        ),
        (
            "kind: Queue\nmetadata: {name: q}\nspec: {<<: {weight: 1}}\n",
            &["3:8: spec[<<]: merge keys are not read: write the fields out"],
        ),
        ("? [a]\n: b\n", &["1:3: (file): a key must be text, not a list or a mapping"]),
        ("kind: !secret Queue\n", &["1:15: (file): the tag `!secret` is not read: leave it out"]),
        ("x: &a 1\ny: *a\n", &["2:4: (file): aliases (`*name`) are not read: write the value out"]),
        // The document after a broken one is still read.
        (
            "a: [\n---\nkind: Gnome\n",
            &[
                "1:4: (file): not valid YAML: unclosed bracket '['",
                "3:7: kind: `Gnome` is no kind Muster reads: it reads `Gang`, `Queue`, `Pool`, `Topology`, `Node`",
            ],
        ),
    ]);
}

#[test]
fn references_into_unreadable_documents_are_not_reported() {
    let gang = "{kind: Gang, metadata: {name: g}, spec: {queue: q, roles: [{name: r, min: 1}]}}";
    check(&[
        (
            &format!("{gang}\n---\n{{kind: Queue, metadata: {{name: q}}, spec: {{weight: 0}}}}\n"),
            &["3:51: spec.weight: must be at least 1, not 0"],
        ),
        (
            &format!("{gang}\n---\nkind: Queue\nmetadata: {{nmae: q}}\nspec: {{}}\n"),
            &[
                "4:1: metadata.name: is missing",
                "4:12: metadata.nmae: unknown field; did you mean `name`?",
            ],
        ),
    ]);
}

#[test]
fn nodes_and_levels() {
    check(&[
        (
            "kind: Node\nmetadata: {name: n}\nspec: {count: 0, allocatable: {cpu: 1}}\n",
            &["3:15: spec.count: must be at least 1, not 0"],
        ),
        (
            "kind: Node\nmetadata: {name: n}\nspec: {allocatable: {nvidia.com/gpu: 72}}\n",
            &["3:38: spec.allocatable[nvidia.com/gpu]: must be a whole number of GPUs, at most 64"],
        ),
        (
            "kind: Node\nmetadata: {name: n}\nspec: {allocatable: {cpu: 1}, gpu: {model: H100}}\n",
            &["3:31: spec.gpu.count: is missing"],
        ),
        (
            "{kind: Node, metadata: {name: n}, spec: {count: 2, allocatable: {}}}\n---\n{kind: Node, metadata: {name: n-1}, spec: {allocatable: {}}}\n",
            &["3:31: metadata.name: a Node named `n-1` is already at a.yaml:1"],
        ),
        (
            "{kind: Node, metadata: {name: n}, spec: {count: 900000, allocatable: {}}}\n---\n{kind: Node, metadata: {name: m}, spec: {count: 900001, allocatable: {}}}\n",
            &["3:31: metadata.name: there are 1800001 nodes, and at most 1000000 work"],
        ),
        (
            "kind: Topology\nspec: {levels: []}\n",
            &["2:8: spec.levels: must name at least one level"],
        ),
        (
            "kind: Topology\nspec: {levels: [{name: rack}]}\n",
            &["2:17: spec.levels[0].label: is missing"],
        ),
        (
            "kind: Topology\nspec: {levels: [{name: a, label: x/a}, {name: a, label: x/a}]}\n",
            &[
                "2:47: spec.levels[1].name: `a` is taken: every level has its own name and label",
                "2:57: spec.levels[1].label: `x/a` is taken: every level has its own name and label",
            ],
        ),
        (
            "{kind: Topology, spec: {levels: [{name: a, label: x/a}]}}\n---\n{kind: Topology, spec: {levels: [{name: a, label: x/a}]}}\n",
            &["3:1: (document): there is one Topology at most, and a.yaml:1 is one"],
        ),
    ]);
}
