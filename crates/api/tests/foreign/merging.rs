//! Merged groups: which groups start together, and the gang they become.

use muster_api::assemble::{MergedGroup, merge, role_prefixes};
use muster_api::dialects::{Dialect, GroupRef, Level, Terms, merged_groups};
use muster_api::pod::GpuNames;
use muster_core::constraint::Constraints;

use crate::assembling::{MemberTable, shown, sound};

fn group(full_name: &str) -> GroupRef {
    let (namespace, name) = full_name.split_once('/').expect("a full name");
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    GroupRef { dialect: Dialect::Koordinator, namespace, name }
}

/// The groups that a list on the group `ns/b` merges.
fn read(dialect: Dialect, list: &str) -> String {
    let annotations = [("gang.scheduling.koordinator.sh/groups".to_owned(), list.to_owned())];
    let group = GroupRef { dialect, ..group("ns/b") };
    match merged_groups(&group, &annotations.into()) {
        Some(groups) => groups.iter().map(GroupRef::full_name).collect::<Vec<_>>().join(" "),
        None => "(none)".to_owned(),
    }
}

#[test]
fn list_is_normalized_in_every_spelling() {
    let lists = [
        r#"["ns/a", "ns/b"]"#,
        r#"["ns/b", "ns/a", "ns/b"]"#,
        r#"["ns/a"]"#,
        r#"["a"]"#,
        r#"["other/b"]"#,
        r#"["ns/b"]"#,
        "[]",
        "",
        "ns/a",
        r#"["ns/a", "a/b/c"]"#,
    ];
    let all: Vec<String> = lists
        .iter()
        .map(|list| format!("{list} -> {}", read(Dialect::Koordinator, list)))
        .collect();
    insta::assert_snapshot!(all.join("\n"), @r#"
    ["ns/a", "ns/b"] -> ns/a ns/b
    ["ns/b", "ns/a", "ns/b"] -> ns/a ns/b
    ["ns/a"] -> ns/a ns/b
    ["a"] -> ns/a ns/b
    ["other/b"] -> ns/b other/b
    ["ns/b"] -> ns/b
    [] -> (none)
     -> (none)
    ns/a -> ns/b
    ["ns/a", "a/b/c"] -> ns/b
    "#);
    assert_eq!(read(Dialect::Volcano, lists[0]), "(none)");
}

/// The gang of groups by full name, with their terms and members as in [`MemberTable`].
fn merged(groups: &[(&str, Terms, &[&str])]) -> String {
    let all: Vec<GroupRef> = groups.iter().map(|(name, _, _)| group(name)).collect();
    let (prefixes, nowhere) = (role_prefixes(&all), Constraints::default());
    let tables: Vec<MemberTable> =
        groups.iter().map(|(_, _, members)| MemberTable::new(members)).collect();
    let names: Vec<String> = (0..9).map(|at| format!("p{at}")).collect();
    let members: Vec<_> = tables.iter().map(|table| table.members(&names, &nowhere)).collect();
    let merging = groups.iter().zip(&prefixes).zip(&members);
    let merging: Vec<MergedGroup<'_>> = merging
        .map(|(((name, terms, _), role_prefix), members)| MergedGroup {
            name,
            role_prefix,
            terms,
            members,
        })
        .collect();
    let made = merge("ns/a.joined", &merging, &GpuNames::default());
    let (gang, of) = match made {
        Ok(made) => made,
        Err(why) => return shown(&Err(why)),
    };
    sound(&gang, &members.concat());
    for (role, group) in gang.spec.roles.iter().zip(&of) {
        assert!(role.name.starts_with(&*prefixes[*group]), "{} of {}", role.name, prefixes[*group]);
    }
    let spec = &gang.spec;
    let closeness = spec.closeness.as_ref().map_or(String::new(), |level| format!(", {level:?}"));
    let stops = if spec.disruption.preemptible { "" } else { ", stays" };
    let stops = if spec.disruption.never_preempts { ", never preempts" } else { stops };
    let first = format!("queue {}, priority {}{closeness}{stops}", spec.queue, spec.priority);
    format!("{first}\n{}", shown(&Ok(gang)))
}

/// A case by name: groups with their terms and members.
type Case<'a> = (&'a str, &'a [(&'a str, Terms, &'a [&'a str])]);

fn check(cases: &[Case<'_>]) -> String {
    let one = |(case, groups): &Case<'_>| {
        format!("{case}\n    {}\n", merged(groups).replace('\n', "\n    "))
    };
    cases.iter().map(one).collect()
}

fn min(min: u32) -> Terms {
    Terms { min: Some(min), ..Terms::default() }
}

fn gathered(level: &str) -> Terms {
    Terms { required: Some(Level::Key(level.into())), ..min(1) }
}

#[test]
fn groups_that_start_together_are_one_gang() {
    let one: &[&str] = &["- 0 cpu: 1"];
    let two: &[&str] = &["- 0 cpu: 1", "- 1 cpu: 1"];
    let with_queue = |queue: &str, priority| Terms {
        queue: Some(queue.into()),
        priority: Some(priority),
        ..min(1)
    };
    insta::assert_snapshot!(check(&[
        ("each has its own minimum", &[("ns/a", min(2), two), ("other/b", min(1), two)]),
        (
            "two roles in one, two shapes in the other",
            &[
                ("ns/a", min(2), &["ps 0 cpu: 1", "worker 0 cpu: 2"]),
                ("ns/b", min(2), &["worker 0 cpu: 2", "worker 1 cpu: 4"]),
            ],
        ),
        ("called alike", &[("ns/a", min(1), one), ("other/a", min(1), one)]),
        ("one of them lacks members", &[("ns/a", min(2), two), ("other/b", min(3), one)]),
        ("one of them has none", &[("ns/a", min(2), two), ("other/b", min(3), &[])]),
        ("one of them is done", &[("ns/a", min(1), &["- 0 cpu: 1 done"]), ("ns/b", min(1), one)]),
        (
            "all of them are done",
            &[("ns/a", min(1), &["- 0 cpu: 1 done"]), ("ns/b", min(1), &["- 0 cpu: 1 done"])],
        ),
        (
            "more in all than at least",
            &[
                ("ns/a", Terms { total: Some(2), ..min(1) }, two),
                ("ns/b", Terms { total: Some(3), ..min(1) }, two),
            ],
        ),
        (
            "the first queue and the highest priority",
            &[
                ("ns/a", min(1), one),
                ("ns/b", with_queue("one", 5), one),
                ("ns/c", with_queue("two", 9), one),
            ],
        ),
        (
            "one of them is not to be stopped",
            &[("ns/a", Terms { preemptible: Some(false), ..min(1) }, one), ("ns/b", min(1), one)],
        ),
        ("gathered alike", &[("ns/a", gathered("rack"), one), ("ns/b", gathered("rack"), one)]),
        ("gathered or not", &[("ns/a", gathered("rack"), one), ("ns/b", min(1), one)]),
    ]), @r#"
    each has its own minimum
        queue default, priority 0
        a-member 2..2 cpu=1000: [0, 1]
        b-member 1..2 cpu=1000: [2, 3]
    two roles in one, two shapes in the other
        queue default, priority 0
        a-ps 1..1 cpu=1000: [0]
        a-worker 1..1 cpu=2000: [1]
        b-worker 1..1 cpu=2000: [2]
        b-worker-2 1..1 cpu=4000: [3]
    called alike
        queue default, priority 0
        ns-a-member 1..1 cpu=1000: [0]
        other-a-member 1..1 cpu=1000: [1]
    one of them lacks members
        queue default, priority 0
        a-member 2..2 cpu=1000: [0, 1]
        b-member 3..3 cpu=1000: [2]
        2 absent
    one of them has none
        ! other/b: 0 of 3 members exist, and the requests of the others are unknown
    one of them is done
        queue default, priority 0
        b-member 1..1 cpu=1000: [1]
    all of them are done
        ! every member has finished
    more in all than at least
        queue default, priority 0
        a-member 1..2 cpu=1000: [0, 1]
        b-member 1..3 cpu=1000: [2, 3]
        1 absent
    the first queue and the highest priority
        queue one, priority 9
        a-member 1..1 cpu=1000: [0]
        b-member 1..1 cpu=1000: [1]
        c-member 1..1 cpu=1000: [2]
    one of them is not to be stopped
        queue default, priority 0, stays
        a-member 1..1 cpu=1000: [0]
        b-member 1..1 cpu=1000: [1]
    gathered alike
        queue default, priority 0, Required("rack")
        a-member 1..1 cpu=1000: [0]
        b-member 1..1 cpu=1000: [1]
    gathered or not
        ! groups that start together must have the same required topology level, and these differ
    "#);
}

#[test]
fn one_group_that_never_preempts_decides_for_the_gang() {
    let one: &[&str] = &["- 0 cpu: 1"];
    for (never_preempts, expected) in [(false, ""), (true, ", never preempts")] {
        let terms = Terms { never_preempts, ..min(1) };
        let made = merged(&[("ns/a", min(1), one), ("ns/b", terms, one)]);
        assert_eq!(made.lines().next(), Some(&*format!("queue default, priority 0{expected}")));
    }
}
