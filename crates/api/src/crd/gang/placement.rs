//! Where the members of a gang are placed, in a form in which a gang on thousands of nodes still fits into one object.
//!
//! Each entry names its node. A gang on very many nodes has entries that name several nodes instead: consecutive nodes
//! with the same number of members of the same role share an entry, and consecutive numbers in names are folded as in a
//! host list: `gpu-[008-127]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest number of entries with one node each. An entry takes up to 400 bytes, and an object 1.5 MB.
const ONE_BY_ONE: usize = 500;
/// The largest number of node names that a folded name stands for: the text read here may have been written by others.
const FOLDED: usize = 100_000;

/// Members of one role on one node, or on each of several nodes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// The role.
    #[schemars(length(max = 63))]
    pub role: String,
    /// The node, unless `nodes` names several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub node: String,
    /// Several nodes with the same number of members each; `gpu-[008-127]` stands for 120 nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20_000), inner(length(max = 300)), extend("x-kubernetes-list-type" = "atomic"))]
    pub nodes: Vec<String>,
    /// The number of members on each node.
    pub members: i32,
    /// The pods of these members, as far as they exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub pods: Vec<String>,
    /// The indexes of the node's GPUs that are used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(range(min = 0, max = 63)), extend("x-kubernetes-list-type" = "atomic"))]
    pub devices: Vec<i32>,
}

impl Placement {
    /// The same placement with as few entries as possible, if there are very many. The order of nodes stays.
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

    /// The same placement with one entry per node.
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

/// Splits a name into the part up to the last number before its first dot, that number, and the rest.
fn numbered(name: &str) -> Option<(&str, &str, &str)> {
    let host = name.find('.').unwrap_or(name.len());
    let end = name[..host].rfind(|one: char| one.is_ascii_digit())? + 1;
    let begin = name[..end].rfind(|one: char| !one.is_ascii_digit()).map_or(0, |at| at + 1);
    // More digits than an integer holds are part of the name.
    (end - begin <= 9).then(|| (&name[..begin], &name[begin..end], &name[end..]))
}

/// Folds names with consecutive numbers.
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

/// The names that follow a name, with numbers of the same width.
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

/// The names that a folded name stands for; the name itself if it is not folded.
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
    fn folding_and_unfolding_returns_the_same_placement() {
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
    fn placement_on_few_nodes_is_not_folded() {
        let all = placed((0..ONE_BY_ONE).map(|at| format!("n{at}")));
        assert_eq!(Placement::folded(all.clone()), all);
    }

    #[test]
    fn placement_on_20_000_nodes_with_any_names_fits_into_an_object() {
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
    fn folded_name_that_stands_for_too_many_nodes_is_truncated() {
        assert_eq!(unfold("n[0-99999999999]").len(), FOLDED);
        assert_eq!(unfold("n[9-1]"), Vec::<String>::new());
        assert_eq!(unfold("n[x-1]"), ["n[x-1]"]);
    }
}
