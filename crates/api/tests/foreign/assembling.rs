//! Assembles gangs from terms, members and templates.

use muster_api::assemble::{AssembleError, Assembled, Member, assemble};
use muster_api::dialects::{Dialect, Level, Terms, terms};
use muster_api::pod::{GpuNames, PodSpec};
use muster_api::workloads::{WorkloadRole, roles};
use muster_core::constraint::Constraints;
use muster_core::gang::{Closeness, Request};

use crate::{request_line, yaml};

fn request(resources: &str) -> Request {
    let spec = yaml(&format!("{{containers: [{{resources: {{requests: {{{resources}}}}}}}]}}"));
    PodSpec::read(&spec, "spec")
        .unwrap()
        .request(&Default::default(), &GpuNames::default())
        .unwrap()
}

/// Members written as `role index resources`, with `done` at the end for finished ones; `-` for no role.
pub(super) struct MemberTable(Vec<(String, Option<u32>, Request, bool)>);

impl MemberTable {
    pub(super) fn new(members: &[&str]) -> Self {
        let one = |text: &&str| {
            let mut words = text.splitn(3, ' ');
            let mut next = || words.next().unwrap_or_default();
            let (role, index, rest) = (next().to_owned(), next().parse().ok(), next());
            let done = rest.ends_with("done");
            (role, index, request(rest.trim_end_matches("done").trim()), done)
        };
        Self(members.iter().map(one).collect())
    }

    /// The members under these names.
    pub(super) fn members<'a>(
        &'a self,
        names: &'a [String],
        constraints: &'a Constraints,
    ) -> Vec<Member<'a>> {
        let one = |((role, index, request, done), name): (&'a (_, _, _, _), &'a String)| Member {
            name,
            role: Some(String::as_str(role)).filter(|role| *role != "-"),
            index: *index,
            request,
            constraints,
            done: *done,
        };
        self.0.iter().zip(names).map(one).collect()
    }
}

pub(super) fn shown(result: &Result<Assembled, AssembleError>) -> String {
    match result {
        Err(error) => format!("! {error}"),
        Ok(made) => {
            let roles = made.spec.roles.iter().zip(&made.roles);
            let line = |(role, who): (&muster_core::gang::RoleSpec, &Vec<usize>)| {
                format!(
                    "{} {}..{} {}: {who:?}",
                    role.name,
                    role.min,
                    role.max,
                    request_line(&role.request)
                )
            };
            let mut lines: Vec<String> = roles.map(line).collect();
            if made.absent > 0 {
                lines.push(format!("{} absent", made.absent));
            }
            lines.join("\n")
        }
    }
}

fn made(
    terms: &Terms,
    members: &[&str],
    templates: Option<&[WorkloadRole]>,
) -> Result<Assembled, AssembleError> {
    let table = MemberTable::new(members);
    let nowhere = Constraints::default();
    let names: Vec<String> = (0..members.len()).map(|at| format!("p{at}")).collect();
    let list = table.members(&names, &nowhere);
    let result = assemble("ns/g", terms, &list, templates, &GpuNames::default());
    if let Ok(made) = &result {
        sound(made, &list);
    }
    result
}

/// Properties of every assembled gang.
pub(super) fn sound(made: &Assembled, members: &[Member<'_>]) {
    assert_eq!(made.spec.roles.len(), made.roles.len());
    assert!(!made.roles.is_empty());
    let mut seen: Vec<usize> = made.roles.iter().flatten().copied().collect();
    seen.sort_unstable();
    let alive: Vec<usize> = (0..members.len()).filter(|at| !members[*at].done).collect();
    assert_eq!(seen, alive, "every member that is not done has one role");
    for (role, who) in made.spec.roles.iter().zip(&made.roles) {
        assert!(role.min >= 1 && role.min <= role.max, "{role:?}");
        assert!(who.len() <= role.max as usize, "{role:?}");
    }
    let mut names: Vec<&str> = made.spec.roles.iter().map(|role| &*role.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), made.roles.len(), "names are unique");
}

fn min(min: u32) -> Terms {
    Terms { min: Some(min), ..Terms::default() }
}

fn volcano(spec: &str) -> Terms {
    terms(Dialect::Volcano, &yaml(&format!("{{spec: {{{spec}}}}}")), &GpuNames::default()).unwrap()
}

fn check(cases: &[(&str, Terms, &[&str])]) -> String {
    let mut lines = String::new();
    for (case, terms, members) in cases {
        let result = shown(&made(terms, members, None)).replace('\n', "\n    ");
        lines.push_str(&format!("{case}\n    {result}\n"));
    }
    lines
}

const W: &str = "worker 0 nvidia.com/gpu: 8";
const DONE: &str = "worker 0 nvidia.com/gpu: 8 done";

#[test]
fn members_are_grouped_into_roles_with_minimums() {
    insta::assert_snapshot!(check(&[
        ("all of one role", min(2), &[W, W]),
        ("no minimum: all", Terms::default(), &[W, W, W]),
        ("two roles, all of both", min(3), &["master 0 cpu: 1", W, W]),
        ("members without a role by what they ask for", min(3), &["- 0 cpu: 1", "- 0 cpu: 2", "- 1 cpu: 1"]),
        ("one name, two shapes", min(2), &["worker 0 cpu: 1", "worker 1 cpu: 2"]),
        ("first index first", min(3), &["w 2 cpu: 1", "w 0 cpu: 1", "w 1 cpu: 1"]),
        ("below all: the largest role is elastic", min(3), &["master 0 cpu: 1", W, W, W, W]),
        ("far below all: then the others, but never none", min(1), &["a 0 cpu: 1", "a 0 cpu: 1", "b 0 cpu: 2", "b 0 cpu: 2", "b 0 cpu: 2"]),
        ("of none", min(0), &[W, W]),
        ("by role wins", volcano("minMember: 2, minTaskMember: {ps: 1, worker: 3}"), &["ps 0 cpu: 1", "ps 0 cpu: 1", W, W, W, W]),
        ("by role, and others share the rest", volcano("minMember: 4, minTaskMember: {ps: 1}"), &["ps 0 cpu: 1", W, W, W, W]),
        ("by role below all: both hold", volcano("minMember: 6, minTaskMember: {ps: 1}"), &["ps 0 cpu: 1", "ps 0 cpu: 1", W, W, W, W]),
        ("by role over two shapes", volcano("minTaskMember: {w: 2}"), &["w 0 cpu: 1", "w 0 cpu: 2", "w 0 cpu: 2"]),
    ]), @"
    all of one role
        worker 2..2 nvidia.com/gpux8@1000: [0, 1]
    no minimum: all
        worker 3..3 nvidia.com/gpux8@1000: [0, 1, 2]
    two roles, all of both
        master 1..1 cpu=1000: [0]
        worker 2..2 nvidia.com/gpux8@1000: [1, 2]
    members without a role by what they ask for
        member 2..2 cpu=1000: [0, 2]
        member-2 1..1 cpu=2000: [1]
    one name, two shapes
        worker 1..1 cpu=1000: [0]
        worker-2 1..1 cpu=2000: [1]
    first index first
        w 3..3 cpu=1000: [1, 2, 0]
    below all: the largest role is elastic
        master 1..1 cpu=1000: [0]
        worker 2..4 nvidia.com/gpux8@1000: [1, 2, 3, 4]
    far below all: then the others, but never none
        a 1..2 cpu=1000: [0, 1]
        b 1..3 cpu=2000: [2, 3, 4]
    of none
        worker 1..2 nvidia.com/gpux8@1000: [0, 1]
    by role wins
        ps 1..2 cpu=1000: [0, 1]
        worker 3..4 nvidia.com/gpux8@1000: [2, 3, 4, 5]
    by role, and others share the rest
        ps 1..1 cpu=1000: [0]
        worker 3..4 nvidia.com/gpux8@1000: [1, 2, 3, 4]
    by role below all: both hold
        ps 2..2 cpu=1000: [0, 1]
        worker 4..4 nvidia.com/gpux8@1000: [2, 3, 4, 5]
    by role over two shapes
        w 1..1 cpu=1000: [0]
        w-2 1..2 cpu=2000: [1, 2]
    ");
}

#[test]
fn members_that_do_not_exist_yet() {
    insta::assert_snapshot!(check(&[
        ("like those that do", min(4), &[W]),
        ("like the most of those that do", min(5), &["master 0 cpu: 1", W, W]),
        ("none exists and nothing is known", min(4), &[]),
        ("nothing at all", Terms::default(), &[]),
        ("none exists: an equal part of minResources each", volcano("minMember: 4, minResources: {cpu: 10, nvidia.com/gpu: 32}"), &[]),
        ("not to be divided: some have one more", volcano("minMember: 3, minResources: {nvidia.com/gpu: 8}"), &[]),
        ("fewer devices than members", volcano("minMember: 3, minResources: {cpu: 3, nvidia.com/gpu: 1}"), &[]),
        ("the launcher is here, the workers are not like it", volcano("minMember: 3, minResources: {cpu: 9, nvidia.com/gpu: 16}"), &["launcher 0 cpu: 1"]),
        ("minResources agrees with those that exist", volcano("minMember: 3, minResources: {cpu: 3}"), &["- 0 cpu: 1"]),
        ("a role without existing members", volcano("minMember: 9, minTaskMember: {launcher: 1, worker: 8}"), &["launcher 0 cpu: 1"]),
        ("a role without existing members, with minResources", volcano("minMember: 9, minTaskMember: {launcher: 1, worker: 8}, minResources: {cpu: 9, nvidia.com/gpu: 64}"), &["launcher 0 cpu: 1"]),
        ("more of a role that exists", volcano("minTaskMember: {worker: 3}"), &[W]),
        ("a total above the minimum", Terms { total: Some(6), ..min(2) }, &[W, W]),
    ]), @"
    like those that do
        worker 4..4 nvidia.com/gpux8@1000: [0]
        3 absent
    like the most of those that do
        master 1..1 cpu=1000: [0]
        worker 4..4 nvidia.com/gpux8@1000: [1, 2]
        2 absent
    none exists and nothing is known
        ! 0 of 4 members exist, and the requests of the others are unknown
    nothing at all
        ! 0 of 1 members exist, and the requests of the others are unknown
    none exists: an equal part of minResources each
        rest 4..4 cpu=2500 nvidia.com/gpux8@1000: []
        4 absent
    not to be divided: some have one more
        rest 2..2 nvidia.com/gpux3@1000: []
        rest-2 1..1 nvidia.com/gpux2@1000: []
        3 absent
    fewer devices than members
        rest 1..1 cpu=1000 nvidia.com/gpux1@1000: []
        rest-2 2..2 cpu=1000: []
        3 absent
    the launcher is here, the workers are not like it
        launcher 1..1 cpu=1000: [0]
        rest 2..2 cpu=4000 nvidia.com/gpux8@1000: []
        2 absent
    minResources agrees with those that exist
        member 3..3 cpu=1000: [0]
        2 absent
    a role without existing members
        ! 1 of 9 members exist, and the requests of the others are unknown
    a role without existing members, with minResources
        launcher 1..1 cpu=1000: [0]
        worker 8..8 cpu=1000 nvidia.com/gpux8@1000: []
        8 absent
    more of a role that exists
        worker 3..3 nvidia.com/gpux8@1000: [0]
        2 absent
    a total above the minimum
        worker 2..6 nvidia.com/gpux8@1000: [0, 1]
        4 absent
    ");
}

#[test]
fn minimum_of_one_is_sized_by_min_resources() {
    insta::assert_snapshot!(check(&[
        ("spark: the driver is here", volcano("minMember: 1, minResources: {cpu: 9, memory: 18Gi}"), &["driver 0 cpu: 1, memory: 2Gi"]),
        ("spark: so are some executors", volcano("minMember: 1, minResources: {cpu: 9}"), &["driver 0 cpu: 1", "executor 0 cpu: 2", "executor 1 cpu: 2"]),
        ("spark: all are here", volcano("minMember: 1, minResources: {cpu: 5}"), &["driver 0 cpu: 1", "executor 0 cpu: 2", "executor 1 cpu: 2", "executor 2 cpu: 2"]),
        ("spark: a driver without devices says nothing of those with", volcano("minMember: 1, minResources: {cpu: 9, nvidia.com/gpu: 4}"), &["driver 0 cpu: 1"]),
        ("spark: their sum was rounded", volcano("minMember: 1, minResources: {cpu: 5100m}"), &["driver 0 cpu: 1", "executor 0 cpu: 2", "executor 1 cpu: 2"]),
        ("spark: executors smaller than their driver", volcano("minMember: 1, minResources: {cpu: 5}"), &["driver 0 cpu: 4"]),
        ("no member exists: one per device", volcano("minMember: 1, minResources: {cpu: 16, nvidia.com/gpu: 4}"), &[]),
        ("no member exists: one per core", volcano("minMember: 1, minResources: {cpu: 2500m, memory: 3Gi}"), &[]),
        ("no member exists, but their number is given", volcano("minMember: 1, minResources: {pods: 3, cpu: 6}"), &[]),
        ("what one pod takes is no more than one pod", volcano("minMember: 1, minResources: {cpu: 1, pods: 1}"), &["- 0 cpu: 1", "- 0 cpu: 1"]),
        ("with a higher minimum it does not count", volcano("minMember: 2, minResources: {cpu: 100}"), &["- 0 cpu: 1", "- 0 cpu: 1", "- 0 cpu: 1"]),
        ("parts of a device", volcano("minMember: 2, minResources: {nvidia.com/gpu: 500m}"), &[]),
    ]), @"
    spark: the driver is here
        driver 1..1 cpu=1000 memory=2147483648: [0]
        rest 8..8 cpu=1000 memory=2147483648: []
        8 absent
    spark: so are some executors
        driver 1..1 cpu=1000: [0]
        executor 2..2 cpu=2000: [1, 2]
        rest 2..2 cpu=2000: []
        2 absent
    spark: all are here
        driver 1..1 cpu=1000: [0]
        executor 2..3 cpu=2000: [1, 2, 3]
    spark: a driver without devices says nothing of those with
        driver 1..1 cpu=1000: [0]
        rest 4..4 cpu=2000 nvidia.com/gpux1@1000: []
        4 absent
    spark: their sum was rounded
        driver 1..1 cpu=1000: [0]
        executor 2..2 cpu=2000: [1, 2]
    spark: executors smaller than their driver
        driver 1..1 cpu=4000: [0]
        rest 1..1 cpu=1000: []
        1 absent
    no member exists: one per device
        rest 4..4 cpu=4000 nvidia.com/gpux1@1000: []
        4 absent
    no member exists: one per core
        rest 3..3 cpu=834 memory=1073741824: []
        3 absent
    no member exists, but their number is given
        rest 3..3 cpu=2000: []
        3 absent
    what one pod takes is no more than one pod
        member 1..2 cpu=1000: [0, 1]
    with a higher minimum it does not count
        member 2..3 cpu=1000: [0, 1, 2]
    parts of a device
        rest 2..2 nvidia.com/gpux1@250: []
        2 absent
    ");
}

#[test]
fn finished_members_count_and_take_no_seat() {
    insta::assert_snapshot!(check(&[
        ("one of four is done", min(4), &["w 0 cpu: 1 done", "w 1 cpu: 1", "w 2 cpu: 1", "w 3 cpu: 1"]),
        ("and another is not made again yet", min(4), &["w 0 cpu: 1 done", "w 1 cpu: 1", "w 2 cpu: 1"]),
        ("more are done than the minimum", min(1), &["w 0 cpu: 1 done", "w 1 cpu: 1 done", "w 2 cpu: 1", "w 3 cpu: 1"]),
        ("those that are done are part of the minimum", min(3), &["w 0 cpu: 1 done", "w 1 cpu: 1 done", "w 2 cpu: 1", "w 3 cpu: 1", "w 4 cpu: 1"]),
        ("a role is done", min(3), &["init 0 cpu: 1 done", "w 1 cpu: 2", "w 2 cpu: 2"]),
        ("all are done", min(2), &["w 0 cpu: 1 done", "w 1 cpu: 1 done"]),
    ]), @"
    one of four is done
        w 3..3 cpu=1000: [1, 2, 3]
    and another is not made again yet
        w 3..3 cpu=1000: [1, 2]
        1 absent
    more are done than the minimum
        w 1..2 cpu=1000: [2, 3]
    those that are done are part of the minimum
        w 1..3 cpu=1000: [2, 3, 4]
    a role is done
        w 2..2 cpu=2000: [1, 2]
    all are done
        ! every member has finished
    ");
}

fn workload(text: &str) -> Vec<WorkloadRole> {
    roles(&yaml(text)).unwrap()
}

fn pytorch() -> Vec<WorkloadRole> {
    workload("
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {spec: {containers: [{resources: {requests: {cpu: 1}}}]}}}
    Worker: {replicas: 4, template: {spec: {containers: [{resources: {requests: {nvidia.com/gpu: 8}}}]}}}")
}

#[test]
fn owner_templates_size_the_gang() {
    let elastic = workload("
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  elasticPolicy: {minReplicas: 2, maxReplicas: 8}
  pytorchReplicaSpecs:
    Worker: {replicas: 4, template: {spec: {containers: [{resources: {requests: {nvidia.com/gpu: 8}}}]}}}");
    let cases: [(&str, Terms, &[&str], &[WorkloadRole]); 12] = [
        ("no pod exists", Terms::default(), &[], &pytorch()),
        ("the master exists", min(5), &["master 0 cpu: 1"], &pytorch()),
        (
            "members without a role find theirs",
            min(5),
            &["- 0 nvidia.com/gpu: 8", "- 0 cpu: 1"],
            &pytorch(),
        ),
        ("admission made them larger", min(5), &["worker 0 nvidia.com/gpu: 8, cpu: 1"], &pytorch()),
        ("below all: workers first", min(3), &[], &pytorch()),
        ("an undeclared pod", min(5), &["submitter 0 cpu: 1"], &pytorch()),
        ("elastic by its owner", Terms::default(), &[W], &elastic),
        ("elastic, but its group says all", min(4), &[W], &elastic),
        ("elastic, and its group says how few", min(3), &[], &elastic),
        ("elastic, and all there are are done", Terms::default(), &[DONE; 4], &elastic),
        (
            "elastic, and one of those there are is not done",
            Terms::default(),
            &[DONE, DONE, DONE, W],
            &elastic,
        ),
        (
            "one is done",
            min(5),
            &["worker 0 nvidia.com/gpu: 8 done", "worker 1 nvidia.com/gpu: 8"],
            &pytorch(),
        ),
    ];
    let mut lines = String::new();
    for (case, terms, members, templates) in cases {
        let result = shown(&made(&terms, members, Some(templates))).replace('\n', "\n    ");
        lines.push_str(&format!("{case}\n    {result}\n"));
    }
    insta::assert_snapshot!(lines, @"
    no pod exists
        master 1..1 cpu=1000: []
        worker 4..4 nvidia.com/gpux8@1000: []
        5 absent
    the master exists
        master 1..1 cpu=1000: [0]
        worker 4..4 nvidia.com/gpux8@1000: []
        4 absent
    members without a role find theirs
        worker 4..4 nvidia.com/gpux8@1000: [0]
        master 1..1 cpu=1000: [1]
        3 absent
    admission made them larger
        worker 4..4 cpu=1000 nvidia.com/gpux8@1000: [0]
        master 1..1 cpu=1000: []
        4 absent
    below all: workers first
        master 1..1 cpu=1000: []
        worker 2..4 nvidia.com/gpux8@1000: []
        5 absent
    an undeclared pod
        submitter 1..1 cpu=1000: [0]
        master 1..1 cpu=1000: []
        worker 3..4 nvidia.com/gpux8@1000: []
        5 absent
    elastic by its owner
        worker 2..8 nvidia.com/gpux8@1000: [0]
        3 absent
    elastic, but its group says all
        worker 4..4 nvidia.com/gpux8@1000: [0]
        3 absent
    elastic, and its group says how few
        worker 3..4 nvidia.com/gpux8@1000: []
        4 absent
    elastic, and all there are are done
        ! every member has finished
    elastic, and one of those there are is not done
        worker 1..5 nvidia.com/gpux8@1000: [3]
    one is done
        worker 3..3 nvidia.com/gpux8@1000: [1]
        master 1..1 cpu=1000: []
        3 absent
    ");
}

#[test]
fn invalid_templates_and_uncountable_sums_are_errors() {
    let bad = workload(
        "{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: [{resources: {requests: {cpu: x}}}]}}}}",
    );
    insta::assert_snapshot!(shown(&made(&Terms::default(), &[], Some(&bad))), @"! containers[0].resources.requests.cpu: `x` is not a quantity: write a number with an optional suffix m, k, M, G, T, Ki, Mi, Gi or Ti, such as 8, 500m or 80Gi");
    let huge = workload(
        "{apiVersion: batch/v1, kind: Job, spec: {parallelism: 1000000, template: {spec: {containers: [{resources: {requests: {memory: 1Pi}}}]}}}}",
    );
    insta::assert_snapshot!(shown(&made(&Terms::default(), &[], Some(&huge))), @"! all members together request too much `memory` to count");
}

#[test]
fn one_template_that_never_preempts_decides_for_the_gang() {
    let roles = |policy: &str| {
        workload(&format!("
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Master: {{replicas: 1, template: {{spec: {{{policy}containers: [{{resources: {{requests: {{cpu: 1}}}}}}]}}}}}}
    Worker: {{replicas: 4, template: {{spec: {{containers: [{{resources: {{requests: {{cpu: 1}}}}}}]}}}}}}"))
    };
    for (policy, declared, never_preempts) in [
        ("", false, false),
        ("preemptionPolicy: PreemptLowerPriority, ", false, false),
        ("preemptionPolicy: Never, ", false, true),
        ("", true, true),
        ("preemptionPolicy: PreemptLowerPriority, ", true, true),
    ] {
        let terms = Terms { never_preempts: declared, ..Terms::default() };
        let spec = made(&terms, &[], Some(&roles(policy))).unwrap().spec;
        assert_eq!(spec.disruption.never_preempts, never_preempts, "{policy} {declared}");
    }
}

#[test]
fn gang_has_the_terms_of_its_group() {
    let terms = Terms {
        queue: Some("research".into()),
        priority: Some(7),
        preferred: Some(Level::Key("rack".into())),
        preemptible: Some(false),
        ..min(1)
    };
    let spec = made(&terms, &[W], None).unwrap().spec;
    assert_eq!((&*spec.name, &*spec.queue, spec.priority), ("ns/g", "research", 7));
    assert_eq!(spec.closeness, Some(Closeness::Preferred("rack".into())));
    assert!(!spec.disruption.preemptible);
    let required = Terms { required: Some(Level::Key("zone".into())), ..terms };
    let spec = made(&required, &[W], None).unwrap().spec;
    assert_eq!(spec.closeness, Some(Closeness::Required("zone".into())));
    let tier = Terms { required: Some(Level::Tier(2)), ..min(1) };
    let spec = made(&tier, &[W], None).unwrap().spec;
    assert_eq!(
        (&*spec.queue, spec.closeness, spec.disruption.preemptible),
        ("default", None, true)
    );
}
