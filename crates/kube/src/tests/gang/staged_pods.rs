//! Members that come after others, and are not what was said of them.

use muster_core::gang::{Phase, members_of};
use serde_json::{Value, json};

use crate::effects::outcome::Outcome;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{alone, node, pod, spec};
use crate::tests::schedule::cases::on;

const SPARK: &str = "team/spark-pi-pg.volcano";
const TUNE: &str = "team/tune.scheduler-plugins";

/// What Spark's operator writes for a driver with one core and two executors with eight GPUs: one member will do, and all
/// of this.
fn spark_group() -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "spark-pi-pg", "namespace": "team", "uid": "pg"},
        "spec": {"minMember": 1, "minResources": {"cpu": "3", "nvidia.com/gpu": "16"}},
    })
}

fn spark_pod(name: &str, role: &str, gpus: u32) -> Value {
    let mut pod = alone(name);
    pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "spark-pi-pg"});
    pod["metadata"]["labels"] = json!({"spark-role": role});
    let resources = json!({"cpu": "1", "nvidia.com/gpu": gpus.to_string()});
    pod["spec"]["containers"][0]["resources"] = json!({"requests": resources, "limits": resources});
    pod
}

impl HostFixture {
    /// Where pods of a gang were told to go.
    fn told(&self, gang: &str) -> Vec<String> {
        let record = self.host.gangs.get(gang).expect("a gang");
        record.assigned_nodes.keys().map(ToString::to_string).collect()
    }

    fn is_written(&mut self, gang: &str) {
        self.handle_outcome(Outcome::PlacementWritten(gang.into()));
    }

    /// How many seats a gang has, role by role.
    fn seats(&self, gang: &str) -> Vec<(String, u32)> {
        let (_, gang) = self.gang(gang).expect("a gang");
        let roles = gang.spec.roles.iter().enumerate();
        let mine = |at: usize| gang.members_in(at as u16);
        roles.map(|(at, role)| (role.name.to_string(), mine(at))).collect()
    }
}

/// A driver that waits for room for all of its executors, and is told to go when there is.
fn driver_goes() -> HostFixture {
    let mut stage = HostFixture::new();
    stage.see(node("n0"));
    stage.see(spark_group());
    stage.see(spark_pod("driver", "driver", 0));
    assert_eq!(stage.phase(SPARK), Some(&Phase::Waiting), "half of it was started");
    stage.see(node("n1"));
    assert!(matches!(stage.phase(SPARK), Some(Phase::Admitted { .. })), "{:?}", stage.phase(SPARK));
    stage.is_written(SPARK);
    assert_eq!(stage.told(SPARK), ["team/driver"]);
    stage.see(on(spark_pod("driver", "driver", 0), "n0"));
    stage
}

#[tokio::test]
async fn a_driver_starts_when_there_is_room_for_its_executors_and_they_get_it() {
    let mut stage = driver_goes();
    stage.see(alone("stranger"));
    assert_eq!(
        stage.phase("team/stranger.pod"),
        Some(&Phase::Waiting),
        "their room was given away"
    );
    stage.see(spark_pod("exec-1", "executor", 8));
    let seats = |stage: &HostFixture| -> Vec<String> {
        stage.seats(SPARK).into_iter().map(|(role, seats)| format!("{role} {seats}")).collect()
    };
    assert_eq!(seats(&stage), ["driver 1", "executor 1", "rest 8"]);
    assert!(stage.told(SPARK).is_empty(), "bound before it was written down where");
    stage.is_written(SPARK);
    assert_eq!(stage.told(SPARK), ["team/exec-1"]);
    stage.see(spark_pod("exec-2", "executor", 8));
    assert_eq!(seats(&stage), ["driver 1", "executor 2"]);
    stage.is_written(SPARK);
    assert_eq!(stage.told(SPARK), ["team/exec-1", "team/exec-2"]);
    let told = stage.host.gangs.get(SPARK).expect("a gang").assigned_nodes.clone();
    for (key, at) in &told {
        let name = key.split_once('/').expect("a pod").1;
        stage.see(on(spark_pod(name, "executor", 8), at));
    }
    assert!(matches!(stage.phase(SPARK), Some(Phase::Running { .. })), "{:?}", stage.phase(SPARK));
    assert_eq!(stage.phase("team/stranger.pod"), Some(&Phase::Waiting));
}

#[tokio::test]
async fn who_does_not_fit_in_what_is_kept_waits_and_the_driver_goes_on() {
    let mut stage = driver_goes();
    // More than any node has: nobody said that one of them takes it all.
    let mut large = spark_pod("exec-1", "executor", 8);
    large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("500");
    stage.see(large);
    assert!(matches!(stage.phase(SPARK), Some(Phase::Admitted { .. } | Phase::Running { .. })));
    stage.is_written(SPARK);
    assert!(stage.told(SPARK).is_empty());
    let record = stage.host.gangs.get(SPARK).expect("a gang");
    assert!(
        record.wait_reason.as_deref().is_some_and(|why| why.contains("do not fit")),
        "{record:?}"
    );
    assert!(record.deleting_pods.is_empty(), "the driver was sent away");
}

#[tokio::test]
async fn a_driver_that_is_done_holds_nothing() {
    let mut stage = driver_goes();
    let mut done = on(spark_pod("driver", "driver", 0), "n0");
    done["status"]["phase"] = json!("Succeeded");
    stage.see(done);
    assert_eq!(stage.phase(SPARK), None);
    stage.see(alone("stranger"));
    assert!(matches!(stage.phase("team/stranger.pod"), Some(Phase::Admitted { .. })));
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
async fn an_initializer_starts_when_there_is_room_for_the_nodes_and_they_come_when_it_is_done() {
    let mut stage = HostFixture::new();
    let [train, record, set] = tune();
    stage.see(node("n0"));
    stage.see(train);
    stage.see(record);
    let initializer = || tune_pod("init", "dataset-initializer", 0);
    stage.see(initializer());
    assert_eq!(stage.phase(TUNE), None, "its JobSet was not seen, which says what its nodes take");
    stage.see(set);
    assert_eq!(stage.phase(TUNE), Some(&Phase::Waiting), "half of it was started");
    stage.see(node("n1"));
    stage.is_written(TUNE);
    assert_eq!(stage.told(TUNE), ["team/init"]);
    stage.see(on(initializer(), "n0"));
    let mut done = on(initializer(), "n0");
    done["status"]["phase"] = json!("Succeeded");
    stage.see(done);
    stage.see(alone("stranger"));
    assert_eq!(
        stage.phase("team/stranger.pod"),
        Some(&Phase::Waiting),
        "the nodes' room was given away"
    );
    for name in ["node-0", "node-1"] {
        stage.see(tune_pod(name, "node", 8));
    }
    stage.is_written(TUNE);
    assert_eq!(stage.told(TUNE), ["team/node-0", "team/node-1"]);
    let (_, gang) = stage.gang(TUNE).expect("it runs");
    assert_eq!(
        members_of(&gang.seats),
        2,
        "the initializer's seat is nobody's: {:?}",
        gang.spec.roles
    );
}

#[tokio::test]
async fn a_group_that_is_part_of_another_waits_and_says_so() {
    let mut stage = HostFixture::new();
    stage.see(node("n0"));
    let record = |parent: Value| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
            "metadata": {"name": "leaf", "namespace": "team", "uid": "leaf"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}, "parentCompositePodGroupName": parent},
        })
    };
    stage.see(record(json!("tree")));
    let mut member = alone("leaf-0");
    member["spec"]["schedulingGroup"] = json!({"podGroupName": "leaf"});
    stage.see(member);
    let name = "team/leaf.podgroup";
    assert_eq!(stage.phase(name), None);
    let why = stage.host.gangs.get(name).and_then(|record| record.blocked.clone());
    assert!(why.is_some_and(|(why, _)| why.contains("composite group tree")));
    stage.see(record(Value::Null));
    assert!(matches!(stage.phase(name), Some(Phase::Admitted { .. })), "{:?}", stage.phase(name));
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
async fn who_gets_more_members_while_it_grows_gets_these_too() {
    const RAY: &str = "team/ray.raycluster";
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.show(node("n1"), false);
    let template = json!({"spec": ray_spec()});
    stage.show(
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
    stage.show(ray_pod("ray-head", "headgroup"), false);
    stage.see(ray_pod("ray-gpu-0", "gpu"));
    let bind = |stage: &mut HostFixture, name: &str, group: &str| {
        // Of every change it is written down where members go.
        (0..3).for_each(|_| stage.handle_outcome(Outcome::PlacementWritten(RAY.into())));
        let of = stage.host.gangs.get(RAY).expect("it is there");
        let node = of.assigned_nodes.get(&*format!("team/{name}")).cloned();
        stage.see(on(ray_pod(name, group), &node.unwrap_or_else(|| panic!("{name} has no seat"))));
    };
    bind(&mut stage, "ray-head", "headgroup");
    bind(&mut stage, "ray-gpu-0", "gpu");
    stage.see(ray_pod("ray-gpu-1", "gpu"));
    stage.see(ray_pod("ray-gpu-2", "gpu"));
    bind(&mut stage, "ray-gpu-1", "gpu");
    bind(&mut stage, "ray-gpu-2", "gpu");
    assert_eq!(stage.gang(RAY).map(|(_, gang)| members_of(&gang.seats)), Some(4));
}
