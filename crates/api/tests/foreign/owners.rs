//! Finds the owner of a pod that is its gang.

use std::collections::BTreeMap;

use muster_api::workloads::{
    OwnerRef, WorkloadKind, gang_owner, index_of_pod, named_owner, role_of_pod,
};

/// Owners written as `apiVersion kind name`, the nearest first.
fn chain(owners: &[&str]) -> Vec<OwnerRef> {
    let owner = |text: &&str| {
        let mut words = text.split(' ').map(str::to_owned);
        let mut next = || words.next().unwrap();
        OwnerRef { api_version: next(), kind: next(), name: next(), ..OwnerRef::default() }
    };
    owners.iter().map(owner).collect()
}

/// Labels of a pod.
type Marks<'a> = &'a [(&'a str, &'a str)];

fn labels(pairs: Marks<'_>) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn topmost_known_owner_is_the_gang() {
    let group = ("leaderworkerset.sigs.k8s.io/group-index", "3");
    let lws = "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet llm";
    let cases: [(&[&str], Marks<'_>); 13] = [
        (&[], &[]),
        (&["batch/v1 Job j"], &[]),
        (&["batch/v1 Job j-123", "batch/v1 CronJob j"], &[]),
        (&["batch/v1 Job s-w-0", "jobset.x-k8s.io/v1alpha2 JobSet s"], &[]),
        (
            &[
                "batch/v1 Job t-node-0",
                "jobset.x-k8s.io/v1alpha2 JobSet t",
                "trainer.kubeflow.org/v1alpha1 TrainJob t",
            ],
            &[],
        ),
        (&["trainer.kubeflow.org/v1alpha1 TrainJob t"], &[]),
        (&["kubeflow.org/v1 PyTorchJob p", "example.com/v1 Pipeline x"], &[]),
        (&["batch/v1 Job m-launcher", "kubeflow.org/v2beta1 MPIJob m"], &[]),
        (&["ray.io/v1 RayCluster r", "ray.io/v1 RayJob rj"], &[]),
        (&["apps/v1 ReplicaSet d-1", "apps/v1 Deployment d"], &[]),
        (&["apps/v1 StatefulSet s", "v1 Pod p"], &[]),
        (&["apps/v1 StatefulSet llm", lws], &[group]),
        (&["apps/v1 StatefulSet llm-3", "v1 Pod llm-3", "apps/v1 StatefulSet llm", lws], &[group]),
    ];
    let mut lines = String::new();
    for (owners, marks) in cases {
        let found = gang_owner(&chain(owners), &labels(marks));
        let found = found
            .map(|o| format!("{:?} {} at {}, templates at {}", o.kind, o.gang, o.at, o.templates));
        lines.push_str(&format!(
            "{}\n    {}\n",
            owners.join(" < "),
            found.unwrap_or("none".into())
        ));
    }
    insta::assert_snapshot!(lines, @"

        none
    batch/v1 Job j
        Job j at 0, templates at 0
    batch/v1 Job j-123 < batch/v1 CronJob j
        Job j-123 at 0, templates at 0
    batch/v1 Job s-w-0 < jobset.x-k8s.io/v1alpha2 JobSet s
        JobSet s at 1, templates at 1
    batch/v1 Job t-node-0 < jobset.x-k8s.io/v1alpha2 JobSet t < trainer.kubeflow.org/v1alpha1 TrainJob t
        TrainJob t at 2, templates at 1
    trainer.kubeflow.org/v1alpha1 TrainJob t
        TrainJob t at 0, templates at 0
    kubeflow.org/v1 PyTorchJob p < example.com/v1 Pipeline x
        PyTorchJob p at 0, templates at 0
    batch/v1 Job m-launcher < kubeflow.org/v2beta1 MPIJob m
        MpiJob m at 1, templates at 1
    ray.io/v1 RayCluster r < ray.io/v1 RayJob rj
        RayCluster r at 0, templates at 0
    apps/v1 ReplicaSet d-1 < apps/v1 Deployment d
        none
    apps/v1 StatefulSet s < v1 Pod p
        none
    apps/v1 StatefulSet llm < leaderworkerset.x-k8s.io/v1 LeaderWorkerSet llm
        LeaderWorkerSet llm-3 at 1, templates at 1
    apps/v1 StatefulSet llm-3 < v1 Pod llm-3 < apps/v1 StatefulSet llm < leaderworkerset.x-k8s.io/v1 LeaderWorkerSet llm
        LeaderWorkerSet llm-3 at 3, templates at 3
    ");
}

#[test]
fn operator_labels_give_role_and_index() {
    let cases = [
        (WorkloadKind::Job, vec![("batch.kubernetes.io/job-completion-index", "4")]),
        (
            WorkloadKind::JobSet,
            vec![
                ("jobset.sigs.k8s.io/replicatedjob-name", "driver"),
                ("jobset.sigs.k8s.io/job-index", "2"),
                ("batch.kubernetes.io/job-completion-index", "1"),
            ],
        ),
        (
            WorkloadKind::TrainJob,
            vec![
                ("jobset.sigs.k8s.io/replicatedjob-name", "node"),
                ("batch.kubernetes.io/job-completion-index", "1"),
            ],
        ),
        (
            WorkloadKind::PyTorchJob,
            vec![
                ("training.kubeflow.org/replica-type", "worker"),
                ("training.kubeflow.org/replica-index", "0"),
            ],
        ),
        (WorkloadKind::MpiJobV1, vec![("training.kubeflow.org/replica-type", "launcher")]),
        (WorkloadKind::MpiJob, vec![("training.kubeflow.org/job-role", "launcher")]),
        (WorkloadKind::RayCluster, vec![("ray.io/group", "headgroup")]),
        (
            WorkloadKind::RayCluster,
            vec![("ray.io/group", "small-group"), ("ray.io/replica-host-index", "1")],
        ),
        (WorkloadKind::LeaderWorkerSet, vec![("leaderworkerset.sigs.k8s.io/worker-index", "0")]),
        (WorkloadKind::LeaderWorkerSet, vec![("leaderworkerset.sigs.k8s.io/worker-index", "3")]),
        (WorkloadKind::Pod, vec![]),
        (
            WorkloadKind::TfJob,
            vec![
                ("training.kubeflow.org/replica-type", ""),
                ("training.kubeflow.org/replica-index", "x"),
            ],
        ),
    ];
    let mut lines = String::new();
    for (kind, marks) in cases {
        let labels = labels(&marks);
        let (role, index) = (role_of_pod(kind, &labels), index_of_pod(kind, &labels));
        lines.push_str(&format!("{kind:?}: {role:?} {index:?}\n"));
    }
    insta::assert_snapshot!(lines, @r#"
    Job: Some("worker") Some(4)
    JobSet: Some("driver") Some(2001)
    TrainJob: Some("node") Some(1)
    PyTorchJob: Some("worker") Some(0)
    MpiJobV1: Some("launcher") None
    MpiJob: Some("launcher") None
    RayCluster: Some("headgroup") None
    RayCluster: Some("small-group") Some(1)
    LeaderWorkerSet: Some("leader") Some(0)
    LeaderWorkerSet: Some("worker") Some(3)
    Pod: Some("pod") Some(0)
    TfJob: None None
    "#);
}

#[test]
fn leader_worker_set_is_found_by_label_without_its_stateful_sets() {
    let marks = [
        ("leaderworkerset.sigs.k8s.io/name", "llm"),
        ("leaderworkerset.sigs.k8s.io/group-index", "3"),
    ];
    let labels = labels(&marks);
    let mut chain = chain(&["apps/v1 StatefulSet llm-3"]);
    assert_eq!(gang_owner(&chain, &labels), None);
    chain.extend(named_owner(&labels));
    let found = gang_owner(&chain, &labels).expect("it is known");
    assert_eq!((found.kind, &*found.gang), (WorkloadKind::LeaderWorkerSet, "llm-3"));
}
