//! Pods created in stages, and pods that differ from what their group declared.

use muster_core::gang::{Phase, members_of};
use serde_json::{Value, json};

use crate::effects::outcome::Outcome;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{node, pod, single_pod, spec};
use crate::tests::schedule::cases::on;

const SPARK: &str = "team/spark-pi-pg.volcano";
const TUNE: &str = "team/tune.scheduler-plugins";

/// The group that Spark's operator creates for a driver with one core and two executors with eight GPUs: one member, and
/// the resources of all.
fn spark_group() -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "spark-pi-pg", "namespace": "team", "uid": "pg"},
        "spec": {"minMember": 1, "minResources": {"cpu": "3", "nvidia.com/gpu": "16"}},
    })
}

fn spark_pod(name: &str, role: &str, gpus: u32) -> Value {
    let mut pod = single_pod(name);
    pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "spark-pi-pg"});
    pod["metadata"]["labels"] = json!({"spark-role": role});
    let resources = json!({"cpu": "1", "nvidia.com/gpu": gpus.to_string()});
    pod["spec"]["containers"][0]["resources"] = json!({"requests": resources, "limits": resources});
    pod
}

impl HostFixture {
    /// The nodes that pods of a gang are assigned to.
    fn assigned_pods(&self, gang: &str) -> Vec<String> {
        let record = self.host.gangs.get(gang).expect("a gang");
        record.assigned_nodes.keys().map(ToString::to_string).collect()
    }

    fn is_written(&mut self, gang: &str) {
        self.handle_outcome(Outcome::PlacementWritten(gang.into()));
    }

    /// The number of seats of each role of a gang.
    fn seats(&self, gang: &str) -> Vec<(String, u32)> {
        let (_, gang) = self.gang(gang).expect("a gang");
        let roles = gang.spec.roles.iter().enumerate();
        let mine = |at: usize| gang.members_in(at as u16);
        roles.map(|(at, role)| (role.name.to_string(), mine(at))).collect()
    }
}

/// A driver that waits until all of its executors fit, and is assigned a node then.
fn driver_goes() -> HostFixture {
    let mut fixture = HostFixture::new();
    fixture.see(node("n0"));
    fixture.see(spark_group());
    fixture.see(spark_pod("driver", "driver", 0));
    assert_eq!(fixture.phase(SPARK), Some(&Phase::Waiting), "half of it was started");
    fixture.see(node("n1"));
    assert!(
        matches!(fixture.phase(SPARK), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(SPARK)
    );
    fixture.is_written(SPARK);
    assert_eq!(fixture.assigned_pods(SPARK), ["team/driver"]);
    fixture.see(on(spark_pod("driver", "driver", 0), "n0"));
    fixture
}

#[tokio::test]
async fn driver_starts_when_its_executors_fit_and_they_get_the_seats() {
    let mut fixture = driver_goes();
    fixture.see(single_pod("stranger"));
    assert_eq!(
        fixture.phase("team/stranger.pod"),
        Some(&Phase::Waiting),
        "their seats were given to others"
    );
    fixture.see(spark_pod("exec-1", "executor", 8));
    let seats = |fixture: &HostFixture| -> Vec<String> {
        fixture.seats(SPARK).into_iter().map(|(role, seats)| format!("{role} {seats}")).collect()
    };
    assert_eq!(seats(&fixture), ["driver 1", "executor 1", "rest 8"]);
    assert!(fixture.assigned_pods(SPARK).is_empty(), "bound before the placement was written");
    fixture.is_written(SPARK);
    assert_eq!(fixture.assigned_pods(SPARK), ["team/exec-1"]);
    fixture.see(spark_pod("exec-2", "executor", 8));
    assert_eq!(seats(&fixture), ["driver 1", "executor 2"]);
    fixture.is_written(SPARK);
    assert_eq!(fixture.assigned_pods(SPARK), ["team/exec-1", "team/exec-2"]);
    let assigned = fixture.host.gangs.get(SPARK).expect("a gang").assigned_nodes.clone();
    for (key, at) in &assigned {
        let name = key.split_once('/').expect("a pod").1;
        fixture.see(on(spark_pod(name, "executor", 8), at));
    }
    assert!(
        matches!(fixture.phase(SPARK), Some(Phase::Running { .. })),
        "{:?}",
        fixture.phase(SPARK)
    );
    assert_eq!(fixture.phase("team/stranger.pod"), Some(&Phase::Waiting));
}

#[tokio::test]
async fn executor_larger_than_its_seats_waits_and_the_driver_goes_on() {
    let mut fixture = driver_goes();
    // More than any node has: the group declares only the total of all executors.
    let mut large = spark_pod("exec-1", "executor", 8);
    large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("500");
    fixture.see(large);
    assert!(matches!(fixture.phase(SPARK), Some(Phase::Admitted { .. } | Phase::Running { .. })));
    fixture.is_written(SPARK);
    assert!(fixture.assigned_pods(SPARK).is_empty());
    let record = fixture.host.gangs.get(SPARK).expect("a gang");
    assert!(
        record.wait_reason.as_deref().is_some_and(|why| why.contains("do not fit")),
        "{record:?}"
    );
    assert!(record.deleting_pods.is_empty(), "the driver was evicted");
}

#[tokio::test]
async fn finished_driver_holds_no_seats() {
    let mut fixture = driver_goes();
    let mut done = on(spark_pod("driver", "driver", 0), "n0");
    done["status"]["phase"] = json!("Succeeded");
    fixture.see(done);
    assert_eq!(fixture.phase(SPARK), None);
    fixture.see(single_pod("stranger"));
    assert!(matches!(fixture.phase("team/stranger.pod"), Some(Phase::Admitted { .. })));
}

/// A TrainJob under the coscheduling plugin: its group counts the initializer, which runs before the others exist.
fn tune() -> [Value; 3] {
    let resources = json!({"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "8"}});
    let template = |resources: &Value| json!({"spec": {"schedulerName": "muster", "containers": [{"name": "node", "resources": resources}]}});
    let job = |name: &str, pods: u32, after: Value, resources: &Value| {
        let spec =
            json!({"parallelism": pods, "completions": pods, "template": template(resources)});
        json!({"name": name, "replicas": 1, "dependsOn": after, "template": {"spec": spec}})
    };
    let owner = json!([{
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "tune", "uid": "tune", "controller": true,
    }]);
    let metadata = |owners: &Value| json!({"name": "tune", "namespace": "team", "uid": "tune", "ownerReferences": owners});
    let after = json!([{"name": "dataset-initializer", "status": "Complete"}]);
    [
        json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": metadata(&json!([])),
            "spec": {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 2}, "initializer": {"dataset": {}}},
        }),
        json!({
            "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
            "metadata": metadata(&owner),
            "spec": {"minMember": 3, "scheduleTimeoutSeconds": 60},
        }),
        json!({
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": metadata(&owner),
            "spec": {"replicatedJobs": [
                job("dataset-initializer", 1, json!([]), &json!({"requests": {"cpu": "1"}})),
                job("node", 2, after, &resources),
            ]},
        }),
    ]
}

fn tune_pod(name: &str, role: &str, gpus: u32) -> Value {
    let mut pod = spark_pod(name, role, gpus);
    pod["metadata"]["annotations"] = json!({});
    pod["metadata"]["labels"] = json!({
        "scheduling.x-k8s.io/pod-group": "tune", "jobset.sigs.k8s.io/replicatedjob-name": role,
    });
    if gpus == 0 {
        pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    }
    pod
}

#[tokio::test]
async fn initializer_starts_when_all_nodes_fit_and_these_follow_it() {
    let mut fixture = HostFixture::new();
    let [train, record, set] = tune();
    fixture.see(node("n0"));
    fixture.see(train);
    fixture.see(record);
    let initializer = || tune_pod("init", "dataset-initializer", 0);
    fixture.see(initializer());
    assert_eq!(
        fixture.phase(TUNE),
        None,
        "its JobSet with the requests of its nodes was not observed"
    );
    fixture.see(set);
    assert_eq!(fixture.phase(TUNE), Some(&Phase::Waiting), "half of it was started");
    fixture.see(node("n1"));
    fixture.is_written(TUNE);
    assert_eq!(fixture.assigned_pods(TUNE), ["team/init"]);
    fixture.see(on(initializer(), "n0"));
    let mut done = on(initializer(), "n0");
    done["status"]["phase"] = json!("Succeeded");
    fixture.see(done);
    fixture.see(single_pod("stranger"));
    assert_eq!(
        fixture.phase("team/stranger.pod"),
        Some(&Phase::Waiting),
        "the nodes' seats were given to others"
    );
    for name in ["node-0", "node-1"] {
        fixture.see(tune_pod(name, "node", 8));
    }
    fixture.is_written(TUNE);
    assert_eq!(fixture.assigned_pods(TUNE), ["team/node-0", "team/node-1"]);
    let (_, gang) = fixture.gang(TUNE).expect("it runs");
    assert_eq!(members_of(&gang.seats), 2, "the initializer's seat is kept: {:?}", gang.spec.roles);
}

#[tokio::test]
async fn group_of_a_composite_group_waits_with_the_reason() {
    let mut fixture = HostFixture::new();
    fixture.see(node("n0"));
    let record = |parent: Value| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
            "metadata": {"name": "leaf", "namespace": "team", "uid": "leaf"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}, "parentCompositePodGroupName": parent},
        })
    };
    fixture.see(record(json!("tree")));
    let mut member = single_pod("leaf-0");
    member["spec"]["schedulingGroup"] = json!({"podGroupName": "leaf"});
    fixture.see(member);
    let name = "team/leaf.podgroup";
    assert_eq!(fixture.phase(name), None);
    let why = fixture.host.gangs.get(name).and_then(|record| record.blocked.clone());
    assert!(why.is_some_and(|(why, _)| why.contains("composite group tree")));
    fixture.see(record(Value::Null));
    assert!(
        matches!(fixture.phase(name), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(name)
    );
}

/// A pod of the RayCluster `ray`, with four GPUs.
fn ray_pod(name: &str, group: &str) -> Value {
    let mut pod = pod(name, ("ray.io/v1", "RayCluster", "ray"));
    let kind = if group == "headgroup" { "head" } else { "worker" };
    pod["metadata"]["labels"] =
        json!({"ray.io/cluster": "ray", "ray.io/group": group, "ray.io/node-type": kind});
    pod["spec"] = ray_spec();
    pod
}

fn ray_spec() -> Value {
    let mut spec = spec();
    let amounts = json!({"cpu": "1", "nvidia.com/gpu": "4"});
    spec["containers"][0]["resources"] = json!({"limits": amounts, "requests": amounts});
    spec
}

#[tokio::test]
async fn gang_enlarged_while_it_grows_gets_all_new_members() {
    const RAY: &str = "team/ray.raycluster";
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.show(node("n1"), false);
    let template = json!({"spec": ray_spec()});
    fixture.show(
        json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": "ray", "namespace": "team", "uid": "ray"},
            "spec": {
                "enableInTreeAutoscaling": true, "headGroupSpec": {"template": template},
                "workerGroupSpecs": [{
                    "groupName": "gpu", "replicas": 1, "minReplicas": 1, "maxReplicas": 3,
                    "template": template,
                }],
            },
        }),
        false,
    );
    fixture.show(ray_pod("ray-head", "headgroup"), false);
    fixture.see(ray_pod("ray-gpu-0", "gpu"));
    let bind = |fixture: &mut HostFixture, name: &str, group: &str| {
        // The placement is written for every change.
        (0..3).for_each(|_| fixture.handle_outcome(Outcome::PlacementWritten(RAY.into())));
        let of = fixture.host.gangs.get(RAY).expect("it has a record");
        let node = of.assigned_nodes.get(&*format!("team/{name}")).cloned();
        fixture
            .see(on(ray_pod(name, group), &node.unwrap_or_else(|| panic!("{name} has no seat"))));
    };
    bind(&mut fixture, "ray-head", "headgroup");
    bind(&mut fixture, "ray-gpu-0", "gpu");
    fixture.see(ray_pod("ray-gpu-1", "gpu"));
    fixture.see(ray_pod("ray-gpu-2", "gpu"));
    bind(&mut fixture, "ray-gpu-1", "gpu");
    bind(&mut fixture, "ray-gpu-2", "gpu");
    assert_eq!(fixture.gang(RAY).map(|(_, gang)| members_of(&gang.seats)), Some(4));
}
