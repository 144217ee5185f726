//! Distributes members over topology domains: the planner cannot count members per domain, so each member is assigned
//! one.
//!
//! That is stricter than necessary, since surplus members could go to other domains, but the result is always within
//! the skew.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A topology domain: how many pods it has, and how many of its nodes are ready and suit the member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Domain {
    pub(crate) pods: u32,
    pub(crate) nodes: u32,
}

/// The domain of each of so many members, each in the domain with the fewest pods by then, and at most `max_per_domain`
/// pods in any of them; `None` when they do not fit. Of domains with equally few pods, the one with the most nodes
/// comes first.
pub(crate) fn distribute(
    domains: &BTreeMap<Arc<str>, Domain>,
    members: usize,
    max_per_domain: u32,
) -> Option<Vec<Arc<str>>> {
    let mut filled = domains.clone();
    let mut assigned = Vec::with_capacity(members);
    for _ in 0..members {
        let open = filled.iter_mut().filter(|(_, domain)| domain.pods < max_per_domain);
        let (name, domain) = open.min_by_key(|(name, domain)| {
            (domain.pods, std::cmp::Reverse(domain.nodes), (*name).clone())
        })?;
        domain.pods += 1;
        assigned.push(name.clone());
    }
    assigned.sort();
    Some(assigned)
}

#[cfg(test)]
mod tests {
    use crate::constraints::topology_spread::distribute::*;

    #[test]
    fn emptiest_domains_get_members_first() {
        let domains = |pods: &[(&str, u32, u32)]| {
            pods.iter()
                .map(|(name, pods, nodes)| ((*name).into(), Domain { pods: *pods, nodes: *nodes }))
                .collect()
        };
        type Case<'a> = (&'a [(&'a str, u32, u32)], usize, u32, Option<&'a str>);
        let cases: [Case<'_>; 5] = [
            (&[("a", 0, 1), ("b", 0, 1), ("c", 0, 1)], 6, 9, Some("a a b b c c")),
            (&[("a", 2, 1), ("b", 0, 1)], 3, 9, Some("a b b")),
            (&[("a", 0, 1), ("b", 0, 5)], 1, 9, Some("b")),
            (&[("a", 0, 1), ("b", 0, 5)], 2, 1, Some("a b")),
            (&[("a", 1, 1), ("b", 0, 5)], 2, 1, None),
        ];
        for (pods, members, max_per_domain, expected) in cases {
            let assigned = distribute(&domains(pods), members, max_per_domain)
                .map(|assigned| assigned.join(" "));
            assert_eq!(assigned.as_deref(), expected, "{members} over {pods:?}");
        }
    }
}
