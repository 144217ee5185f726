//! Where the members of a gang go, written so that a gang on thousands of nodes still fits into an object.
//!
//! Each entry names its node. A gang on very many nodes has entries that name several instead: nodes that follow one
//! another in the list, and have as many members of the same role, share an entry, and names that count up are folded as in a
//! host list: `gpu-[008-127]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Entries that are written one by one, at most. An entry takes up to 400 bytes, and an object 1.5 MB.
const ONE_BY_ONE: usize = 500;
/// Names of nodes that a folded name stands for, at most: what is read was written by others, perhaps.
const FOLDED: usize = 100_000;

/// Pods of one role on one node, or on each of several.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// The role.
    #[schemars(length(max = 63))]
    pub role: String,
    /// The node, unless `nodes` names several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub node: String,
    /// Nodes with as many members each; `gpu-[008-127]` is 120 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20_000), inner(length(max = 300)), extend("x-kubernetes-list-type" = "atomic"))]
    pub nodes: Vec<String>,
    /// How many members on each.
    pub members: i32,
    /// Their pods, as far as they exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub pods: Vec<String>,
    /// Which of the node's GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(range(min = 0, max = 63)), extend("x-kubernetes-list-type" = "atomic"))]
    pub devices: Vec<i32>,
}

impl Placement {
    /// The same with as few entries as it takes, if there are very many. The order of nodes stays.
    pub fn folded(placement: Vec<Self>) -> Vec<Self> {
        if placement.len() <= ONE_BY_ONE {
            return placement;
        }
        let mut folded: Vec<Self> = Vec::new();
        for one in placement {
            let is_plain = one.pods.is_empty() && one.devices.is_empty() && one.nodes.is_empty();
            let joins = |last: &&mut Self| {
                is_plain
                    && !last.nodes.is_empty()
                    && (&last.role, last.members) == (&one.role, one.members)
            };
            match folded.last_mut().filter(joins) {
                Some(last) => last.nodes.push(one.node),
                None if is_plain => {
                    folded.push(Self { nodes: vec![one.node], node: String::new(), ..one });
                }
                None => folded.push(one),
            }
        }
        for one in &mut folded {
            one.nodes = fold(&std::mem::take(&mut one.nodes));
        }
        folded
    }

    /// The same with an entry for each node.
    pub fn unfolded(placement: Vec<Self>) -> Vec<Self> {
        let mut all = Vec::new();
        for mut one in placement {
            let nodes = std::mem::take(&mut one.nodes);
            if nodes.is_empty() {
                all.push(one);
                continue;
            }
            for node in nodes.iter().flat_map(|name| unfold(name)).take(FOLDED) {
                all.push(Self { node, ..one.clone() });
            }
        }
        all
    }
}

/// A name up to the last number before its first dot, that number, and the rest.
fn numbered(name: &str) -> Option<(&str, &str, &str)> {
    let host = name.find('.').unwrap_or(name.len());
    let end = name[..host].rfind(|one: char| one.is_ascii_digit())? + 1;
    let begin = name[..end].rfind(|one: char| !one.is_ascii_digit()).map_or(0, |at| at + 1);
    // More digits than a number has are part of a name.
    (end - begin <= 9).then(|| (&name[..begin], &name[begin..end], &name[end..]))
}

/// Folds names that count up by one.
fn fold(names: &[String]) -> Vec<String> {
    let mut folded = Vec::new();
    let mut rest = names;
    while let Some((first, others)) = rest.split_first() {
        let run = 1 + others
            .iter()
            .zip(names_after(first))
            .take_while(|(is, would)| *is == would)
            .count();
        match (run, numbered(first), rest.get(run - 1).and_then(|last| numbered(last))) {
            (3.., Some((before, low, after)), Some((_, high, _))) => {
                folded.push(format!("{before}[{low}-{high}]{after}"));
            }
            _ => folded.extend_from_slice(&rest[..run]),
        }
        rest = &rest[run..];
    }
    folded
}

/// The names that would follow one, with numbers as wide as its own.
fn names_after(first: &str) -> impl Iterator<Item = String> {
    let parts = numbered(first).and_then(|(before, number, after)| {
        Some((before.to_owned(), number.len(), number.parse::<u64>().ok()?, after.to_owned()))
    });
    parts.into_iter().flat_map(|(before, width, number, after)| {
        let is_as_wide = move |number: &u64| number.to_string().len() <= width || width == 1;
        let next = (number + 1..).take_while(is_as_wide);
        next.map(move |number| format!("{before}{number:0width$}{after}"))
    })
}

/// The names that a folded name stands for; itself if it is not folded.
fn unfold(name: &str) -> Vec<String> {
    let range = || {
        let (before, rest) = name.split_once('[')?;
        let (range, after) = rest.split_once(']')?;
        let (low, high) = range.split_once('-')?;
        let (first, last): (usize, usize) = (low.parse().ok()?, high.parse().ok()?);
        let width = low.len();
        let names = (first..=last).take(FOLDED);
        Some(names.map(|number| format!("{before}{number:0width$}{after}")).collect())
    };
    range().unwrap_or_else(|| vec![name.to_owned()])
}

#[cfg(test)]
mod tests {
    use crate::crd::gang::placement::*;

    fn placed(names: impl IntoIterator<Item = String>) -> Vec<Placement> {
        let one =
            |node| Placement { role: "worker".into(), node, members: 1, ..Placement::default() };
        names.into_iter().map(one).collect()
    }

    fn bytes(placement: &[Placement]) -> usize {
        serde_json::to_string(placement).expect("JSON").len()
    }

    #[test]
    fn folding_and_unfolding_changes_nothing() {
        let odd =
            ["a", "n1", "n1.b-7", "n[1]", "1", "node-99999999999999999999", "x-9", "x-10", "x-11"];
        let names = (0..40).flat_map(|at| {
            let mut some: Vec<String> = odd.iter().map(|name| format!("{name}-{at}")).collect();
            some.extend((0..at).map(|number| format!("gpu-{number:03}.zone-{at}")));
            some.extend((7..7 + at).map(|number| format!("plain{number}")));
            some
        });
        let mut all = placed(names);
        all[3].members = 2;
        all[9].role = "leader".into();
        all[12].devices = vec![1];
        assert!(all.len() > ONE_BY_ONE);
        let folded = Placement::folded(all.clone());
        assert!(folded.len() < 20, "{}", folded.len());
        assert_eq!(Placement::unfolded(folded), all);
    }

    #[test]
    fn few_nodes_are_written_one_by_one() {
        let all = placed((0..ONE_BY_ONE).map(|at| format!("n{at}")));
        assert_eq!(Placement::folded(all.clone()), all);
    }

    #[test]
    fn placement_on_20_000_nodes_of_any_names_fits_into_an_object() {
        let numbered = placed((0..20_000).map(|at| format!("gpu-{at:05}.cluster.example")));
        let folded = Placement::folded(numbered);
        assert_eq!(folded[0].nodes, ["gpu-[00000-19999].cluster.example"]);
        let cloud = |at: u64| {
            let odd = at.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            format!("gke-training-gpu-pool-{:08x}-{:04x}", odd >> 32, odd & 0xFFFF)
        };
        let odd = placed((0..20_000).map(cloud));
        assert!(bytes(&odd) > 1_500_000);
        let folded = Placement::folded(odd);
        assert!(bytes(&folded) < 1_000_000, "{}", bytes(&folded));
    }

    #[test]
    fn a_folded_name_that_stands_for_too_many_is_cut() {
        assert_eq!(unfold("n[0-99999999999]").len(), FOLDED);
        assert_eq!(unfold("n[9-1]"), Vec::<String>::new());
        assert_eq!(unfold("n[x-1]"), ["n[x-1]"]);
    }
}
