//! Label requirements of a role, with node names compiled to numbers.
//!
//! A role can name hundreds of nodes that it prefers or avoids, in several lists. Two nodes that are in the same lists
//! differ only in class and place. So the lists are sorted once per signature, a name is looked up once, and from
//! there on a requirement on it is a comparison of numbers.
//!
//! Deliberately not here: taints and GPUs, which have no names in them.

use std::sync::Arc;

use crate::hardware::constraint::{Constraints, Requirement, Test};
use crate::hardware::topology::HOSTNAME;

/// The name class of a node: the same for all nodes that are in the same lists of a signature.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NameClass(u32);

impl NameClass {
    /// The class of a node that has no name yet.
    pub const NAMELESS: Self = Self(0);
    /// The class of a node whose name is in no list.
    pub const UNLISTED: Self = Self(1);
}

/// One requirement.
#[derive(Clone, Debug)]
enum Check {
    /// The name is in the list of this number, or is not, as wanted; a node without a name is in none.
    List { list: u32, wanted: bool },
    /// The node has a name, or has none, as wanted.
    Name { wanted: bool },
    /// Anything about another label, and names that are compared as numbers.
    Label(Requirement),
}

/// Names and their classes.
type Names = Vec<(Arc<str>, NameClass)>;

/// A node as the requirements see it.
pub(crate) struct Seen<'a> {
    pub(crate) mention: NameClass,
    /// The value of any label, including the name.
    pub(crate) value_of: &'a dyn Fn(&str) -> Option<Arc<str>>,
}

/// All requirements of a role.
#[derive(Clone, Debug)]
pub(crate) struct Checks {
    all: Vec<Check>,
    any: Vec<Vec<Check>>,
    prefer: Vec<(u8, Vec<Check>)>,
    /// Every name that is in a list, sorted.
    names: Names,
    /// The lists of each name class, sorted.
    lists: Vec<Vec<u32>>,
    /// Whether names are compared as numbers, so that each of them is a case of its own.
    by_number: bool,
}

impl Checks {
    pub(crate) fn of(constraints: &Constraints) -> Self {
        let mut pairs: Vec<(Arc<str>, u32)> = Vec::new();
        let (mut lists, mut by_number) = (0, false);
        let mut check = |requirement: &Requirement| {
            if *requirement.key != *HOSTNAME {
                return Check::Label(requirement.clone());
            }
            match &requirement.test {
                Test::In(names) | Test::NotIn(names) => {
                    let list = lists;
                    lists += 1;
                    pairs.extend(names.iter().map(|name| (name.clone(), list)));
                    Check::List { list, wanted: matches!(requirement.test, Test::In(_)) }
                }
                Test::Exists => Check::Name { wanted: true },
                Test::DoesNotExist => Check::Name { wanted: false },
                Test::Gt(_) | Test::Lt(_) => {
                    by_number = true;
                    Check::Label(requirement.clone())
                }
            }
        };
        let mut term = |term: &[Requirement]| term.iter().map(&mut check).collect::<Vec<_>>();
        let all = term(&constraints.all);
        let any = constraints.any.iter().map(|one| term(one)).collect();
        let preferences = constraints.prefer.iter();
        let prefer = preferences.map(|wish| (wish.weight, term(&wish.term))).collect();
        let (names, lists) = sorted(pairs);
        Self { all, any, prefer, names, lists, by_number }
    }

    /// Every listed name and its class; none when names are compared as numbers.
    pub(crate) fn mentioned(&self) -> Option<&[(Arc<str>, NameClass)]> {
        (!self.by_number).then_some(&self.names)
    }

    /// The class of a name.
    pub(crate) fn mention(&self, name: Option<&Arc<str>>) -> NameClass {
        let Some(name) = name else { return NameClass::NAMELESS };
        match self.names.binary_search_by(|(other, _)| (**other).cmp(name)) {
            Ok(at) => self.names[at].1,
            Err(_) => NameClass::UNLISTED,
        }
    }

    /// Whether every required term holds.
    pub(crate) fn hold(&self, node: &Seen<'_>) -> bool {
        let any = self.any.is_empty() || self.any.iter().any(|term| self.all_hold(term, node));
        any && self.all_hold(&self.all, node)
    }

    /// The summed weight of the preferences that hold.
    pub(crate) fn weight(&self, node: &Seen<'_>) -> i32 {
        let granted = self.prefer.iter().filter(|(_, term)| self.all_hold(term, node));
        granted.map(|(weight, _)| i32::from(*weight)).sum()
    }

    fn all_hold(&self, term: &[Check], node: &Seen<'_>) -> bool {
        term.iter().all(|check| match check {
            Check::List { list, wanted } => {
                let lists = &self.lists[node.mention.0 as usize];
                lists.binary_search(list).is_ok() == *wanted
            }
            Check::Name { wanted } => (node.mention != NameClass::NAMELESS) == *wanted,
            Check::Label(requirement) => {
                requirement.holds((node.value_of)(&requirement.key).as_deref())
            }
        })
    }
}

/// Names with their classes, and the lists of each class, from pairs of name and list.
fn sorted(mut pairs: Vec<(Arc<str>, u32)>) -> (Names, Vec<Vec<u32>>) {
    pairs.sort_unstable();
    pairs.dedup();
    let mut all: Vec<(Vec<u32>, Arc<str>)> = pairs
        .chunk_by(|a, b| a.0 == b.0)
        .map(|same| (same.iter().map(|(_, list)| *list).collect(), same[0].0.clone()))
        .collect();
    all.sort_unstable();
    // The classes of a node without a name, and of a name in no list.
    let mut lists = vec![Vec::new(); 2];
    let mut names = Vec::with_capacity(all.len());
    for (mentions, name) in all {
        if lists.last() != Some(&mentions) {
            lists.push(mentions);
        }
        names.push((name, NameClass(lists.len() as u32 - 1)));
    }
    names.sort_unstable();
    (names, lists)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::constraint::Preference;

    fn on(key: &str, test: Test) -> Requirement {
        Requirement { key: key.into(), test }
    }

    fn names(names: &str) -> Vec<Arc<str>> {
        names.split(' ').map(Arc::from).collect()
    }

    /// Every operator, on the name and on another label, in a required term, as one of several terms and as a
    /// preference.
    fn cases() -> Vec<Constraints> {
        let tests = [
            Test::In(names("a c")),
            Test::In(names("c b c")),
            Test::In(Vec::new()),
            Test::NotIn(names("b")),
            Test::NotIn(names("d a 7")),
            Test::Exists,
            Test::DoesNotExist,
            Test::Gt(5),
            Test::Lt(5),
        ];
        let disk = on("disk", Test::In(names("fast")));
        let mut cases = Vec::new();
        for one in &tests {
            for other in &tests {
                let terms = [
                    vec![on(HOSTNAME, one.clone()), disk.clone()],
                    vec![on(HOSTNAME, other.clone())],
                ];
                let wish = |(weight, term): (u8, &Vec<Requirement>)| Preference {
                    weight,
                    term: term.clone(),
                };
                let prefer = [3, 40].into_iter().zip(&terms).map(wish).collect();
                cases.push(Constraints { prefer, ..Constraints::default() });
                cases.push(Constraints { all: terms.concat(), ..Constraints::default() });
                cases.push(Constraints { any: terms.to_vec(), ..Constraints::default() });
            }
        }
        cases
    }

    #[test]
    fn compiled_checks_match_plain_evaluation() {
        let nodes = [None, Some("a"), Some("b"), Some("c"), Some("d"), Some("e"), Some("7")];
        for constraints in cases() {
            let checks = Checks::of(&constraints);
            for (name, disk) in nodes.into_iter().flat_map(|name| [(name, "fast"), (name, "slow")])
            {
                let name: Option<Arc<str>> = name.map(Arc::from);
                let value_of = |key: &str| {
                    if key == HOSTNAME { name.clone() } else { Some(Arc::from(disk)) }
                };
                let holds = |term: &[Requirement]| {
                    term.iter().all(|one| one.holds(value_of(&one.key).as_deref()))
                };
                let any = constraints.any.is_empty() || constraints.any.iter().any(|t| holds(t));
                let granted = constraints.prefer.iter().filter(|wish| holds(&wish.term));
                let weight: i32 = granted.map(|wish| i32::from(wish.weight)).sum();

                let seen = Seen { mention: checks.mention(name.as_ref()), value_of: &value_of };
                assert_eq!(checks.hold(&seen), any && holds(&constraints.all), "{constraints:?}");
                assert_eq!(checks.weight(&seen), weight, "{constraints:?} of {name:?}");
            }
        }
    }

    #[test]
    fn nodes_in_the_same_lists_share_a_name_class() {
        let away = |weight, list| Preference {
            weight,
            term: vec![on(HOSTNAME, Test::NotIn(names(list)))],
        };
        let prefer = vec![away(1, "d c b a"), away(2, "b a b")];
        let checks = Checks::of(&Constraints { prefer, ..Constraints::default() });
        let mention = |name: &str| checks.mention(Some(&name.into()));
        assert_eq!(mention("a"), mention("b"));
        assert_eq!(mention("c"), mention("d"));
        assert_ne!(mention("a"), mention("c"));
        assert_eq!(mention("e"), NameClass::UNLISTED);
        assert_eq!(checks.mentioned().map(<[_]>::len), Some(4));
    }
}
