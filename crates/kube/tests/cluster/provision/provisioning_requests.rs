//! ProvisioningRequests of users: capacity is provisioned, booked, used by their pods and released.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use muster_kube::objects::NodeClaim;
use muster_testkit::cluster::{Cluster, Part, Role, Setup};
use serde_json::{Value, json};

use crate::fixture::clusters::{cluster_with_nodes, karpenter_cluster, kwok_cluster};
use crate::fixture::controller::Controller;
use crate::fixture::leftovers::{remove_jobs, until_no_leftovers};
use crate::fixture::manifests::{POOL, job, node, pod};
use crate::fixture::objects::until_event;
use crate::fixture::pods::bound_with_prefix;
use crate::provision::whole_orders::keep_first_node_unready;

const KIND: &str = "cluster-autoscaler/autoscaling.x-k8s.io_provisioningrequests";
const CONSUMES: &str = "autoscaling.x-k8s.io/consume-provisioning-request";
/// The older name of the annotation.
const CONSUMES_OLD: &str = "cluster-autoscaler.kubernetes.io/consume-provisioning-request";
/// Long enough for the controller to act wrongly.
const A_WHILE: Duration = Duration::from_secs(4);

/// A request for this many pods with this many GPUs each.
fn request(name: &str, count: u32, gpus: u32) -> String {
    format!("{}\n---\n{}", template(name, gpus, ""), only_request(name, count, "gang.muster.sh"))
}

fn template(name: &str, gpus: u32, annotations: &str) -> String {
    format!(
        "
apiVersion: v1
kind: PodTemplate
metadata: {{name: {name}, namespace: default}}
template:
  metadata: {{annotations: {{{annotations}}}}}
  spec:
    restartPolicy: Never
    containers:
    - name: worker
      image: none
      resources: {{limits: {{nvidia.com/gpu: {gpus}}}, requests: {{cpu: 1}}}}
"
    )
}

fn only_request(name: &str, count: u32, class: &str) -> String {
    format!(
        "
apiVersion: autoscaling.x-k8s.io/v1
kind: ProvisioningRequest
metadata: {{name: {name}, namespace: default}}
spec:
  provisioningClassName: {class}
  podSets: [{{podTemplateRef: {{name: {name}}}, count: {count}}}]
"
    )
}

/// A Job whose pods use the booking of the request with its name.
fn job_for(name: &str, pods: u32) -> String {
    job(name, pods, 8).replace("annotations: {", &format!("annotations: {{{CONSUMES}: {name}, "))
}

async fn requests(cluster: &Cluster, role: Role) -> Api<DynamicObject> {
    let kind = ApiResource {
        group: "autoscaling.x-k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "autoscaling.x-k8s.io/v1".to_owned(),
        kind: "ProvisioningRequest".to_owned(),
        plural: "provisioningrequests".to_owned(),
    };
    Api::namespaced_with(cluster.client(role).await, "default", &kind)
}

/// The status, reason and message of a condition of a request.
async fn condition(cluster: &Cluster, name: &str, kind: &str) -> Option<(String, String, String)> {
    let object = requests(cluster, Role::Observer).await.get(name).await.ok()?;
    let all = object.data.pointer("/status/conditions")?.as_array()?.clone();
    let one = all.into_iter().find(|one| one["type"] == kind)?;
    let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

async fn is_true(cluster: &Cluster, name: &str, kind: &str) -> bool {
    condition(cluster, name, kind).await.is_some_and(|(status, ..)| status == "True")
}

/// Waits until a condition of a request is true, and returns its reason and message.
async fn until_true(cluster: &Cluster, name: &str, kind: &str) -> (String, String) {
    cluster
        .until(&format!("{name} is {kind}"), async || {
            let (status, reason, message) = condition(cluster, name, kind).await?;
            (status == "True").then_some((reason, message))
        })
        .await
}

async fn claims(cluster: &Cluster) -> BTreeSet<String> {
    let claims: Api<NodeClaim> = Api::all(cluster.client(Role::Observer).await);
    let all = claims.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
    all.iter().map(ResourceExt::name_any).collect()
}

async fn until_claims(cluster: &Cluster, count: usize) -> BTreeSet<String> {
    cluster
        .until(&format!("{count} claims are asked for"), async || {
            Some(claims(cluster).await).filter(|claims| claims.len() == count)
        })
        .await
}

async fn nodes(cluster: &Cluster) -> Vec<Node> {
    let nodes: Api<Node> = Api::all(cluster.client(Role::Observer).await);
    nodes.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default()
}

async fn node_names(cluster: &Cluster) -> BTreeSet<String> {
    nodes(cluster).await.iter().map(ResourceExt::name_any).collect()
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).count();
    taints == 0 && conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

/// Waits until this many pods with this prefix are bound, and returns their nodes.
async fn until_bound(cluster: &Cluster, prefix: &str, count: usize) -> BTreeSet<String> {
    cluster
        .until(&format!("{count} pods of {prefix} are bound"), async || {
            (bound_with_prefix(cluster, prefix).await == count).then_some(())
        })
        .await;
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let all = pods.list(&ListParams::default()).await.expect("pods").items;
    let mine = all.into_iter().filter(|pod| pod.name_any().starts_with(prefix));
    mine.filter_map(|pod| pod.spec?.node_name).collect()
}

/// Waits until this many pods with this prefix have succeeded.
async fn until_done(cluster: &Cluster, prefix: &str, count: usize) {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let is_done = |pod: &&Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        pod.name_any().starts_with(prefix) && phase == Some("Succeeded")
    };
    cluster
        .until(&format!("{count} pods of {prefix} are done"), async || {
            let all = pods.list(&ListParams::default()).await.ok()?.items;
            (all.iter().filter(is_done).count() == count).then_some(())
        })
        .await;
}

/// Removes the taints of a node.
async fn remove_taints(cluster: &Cluster, node: &str) {
    let nodes: Api<Node> = Api::all(cluster.client(Role::Admin).await);
    let patch = Patch::Merge(json!({"spec": {"taints": null}}));
    nodes.patch(node, &PatchParams::default(), &patch).await.expect("healed");
}

#[tokio::test(flavor = "multi_thread")]
async fn booked_capacity_is_bought_together_and_used_by_its_pods() {
    let Some(cluster) = karpenter_cluster().await else { return };
    let Some(()) = cluster.define_or_skip(&[KIND]).await else { return };
    cluster.apply(POOL).await.expect("a pool");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // One of the four nodes stays unready from when it appears: the capacity is not complete.
    let wanted = request("train", 4, 8);
    let (spoiled, asked) = tokio::join!(keep_first_node_unready(&cluster), cluster.apply(&wanted));
    asked.expect("a request");
    let bought = until_claims(&cluster, 4).await;
    until_true(&cluster, "train", "Accepted").await;
    cluster
        .until("three of four nodes are ready", async || {
            let all = nodes(&cluster).await;
            let ready = all.iter().filter(|node| is_ready(node)).count();
            (all.len() == 4 && ready == 3).then_some(())
        })
        .await;
    let (_, _, message) = cluster
        .until("the condition reports progress", async || {
            let reported = condition(&cluster, "train", "Provisioned").await?;
            reported.2.contains("3/4").then_some(reported)
        })
        .await;
    tokio::time::sleep(A_WHILE).await;
    assert!(
        !is_true(&cluster, "train", "Provisioned").await,
        "with three of four nodes: {message}"
    );
    remove_taints(&cluster, &spoiled).await;
    until_true(&cluster, "train", "Provisioned").await;
    let all = nodes(&cluster).await;
    assert!(all.len() == 4 && all.iter().all(is_ready), "provisioned before all nodes were ready");
    let booked = node_names(&cluster).await;
    // Other pods do not get the booked nodes, although these look free: they get a node of their own.
    cluster.apply_as(Role::User, &job("other", 1, 8)).await.expect("a job");
    let elsewhere = until_bound(&cluster, "other", 1).await;
    assert!(booked.is_disjoint(&elsewhere), "{elsewhere:?} was booked");
    cluster.apply_as(Role::User, &job_for("train", 4)).await.expect("a job");
    assert_eq!(until_bound(&cluster, "train", 4).await, booked);
    let (reason, _) = until_true(&cluster, "train", "BookingExpired").await;
    assert_eq!(reason, "CapacityBookingConsumed");
    assert!(claims(&cluster).await.is_superset(&bought));
    assert!(
        !is_true(&cluster, "train", "Failed").await
            && !is_true(&cluster, "train", "CapacityRevoked").await
    );
    remove_jobs(&cluster).await;
    until_no_leftovers(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_request_releases_its_nodes() {
    let Some(cluster) = karpenter_cluster().await else { return };
    let Some(()) = cluster.define_or_skip(&[KIND]).await else { return };
    cluster.apply(POOL).await.expect("a pool");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let requests = requests(&cluster, Role::Admin).await;
    let how = DeleteParams::default();
    // Deleted while its nodes are being created.
    cluster.apply(&request("early", 4, 8)).await.expect("a request");
    until_claims(&cluster, 4).await;
    requests.delete("early", &how).await.expect("deleted");
    until_no_leftovers(&cluster).await;
    // Deleted when they exist. Another request that stays shows that no timeout ended it.
    cluster.apply(&request("kept", 1, 8)).await.expect("a request");
    cluster.apply(&request("late", 2, 8)).await.expect("a request");
    until_true(&cluster, "late", "Provisioned").await;
    until_true(&cluster, "kept", "Provisioned").await;
    requests.delete("late", &how).await.expect("deleted");
    until_claims(&cluster, 1).await;
    assert!(!is_true(&cluster, "kept", "BookingExpired").await);
    // The same name again is another request.
    cluster.apply(&request("late", 2, 8)).await.expect("a request");
    until_true(&cluster, "late", "Provisioned").await;
    requests.delete("late", &how).await.expect("deleted");
    requests.delete("kept", &how).await.expect("deleted");
    until_no_leftovers(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unservable_request_reports_why() {
    let Some(cluster) = kwok_cluster(2).await else { return };
    let Some(()) = cluster.define_or_skip(&[KIND]).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&only_request("bare", 1, "gang.muster.sh")).await.expect("a request");
    cluster.apply(&request("large", 1, 16)).await.expect("a request");
    let odd = format!(
        "{}\n---\n{}",
        template("odd", 0, "gpu-fraction: lots"),
        only_request("odd", 1, "gang.muster.sh")
    );
    cluster.apply(&odd).await.expect("a request");
    // Requests of other classes are ignored.
    let foreign = only_request("foreign", 1, "check-capacity.autoscaling.x-k8s.io");
    cluster.apply(&foreign).await.expect("a request");
    // The API server itself refuses a count of zero.
    assert!(cluster.apply(&request("none", 0, 8)).await.is_err());
    let reported = cluster
        .until("its condition names what is missing", async || {
            condition(&cluster, "bare", "Accepted").await
        })
        .await;
    assert_eq!((&*reported.0, &*reported.2), ("False", "PodTemplate bare does not exist"));
    let (reason, message) = until_true(&cluster, "odd", "Failed").await;
    assert!(reason == "Invalid" && message.contains("gpu-fraction"), "{reason}: {message}");
    let (reason, message) = until_true(&cluster, "large", "Failed").await;
    assert!(reason == "CapacityIsNotFound" && message.contains("can never run"), "{message}");
    let (reason, message) = until_true(&cluster, "bare", "Failed").await;
    assert_eq!((&*reason, &*message), ("Invalid", "PodTemplate bare does not exist"));
    let others = requests(&cluster, Role::Observer).await;
    let foreign = others.get("foreign").await.expect("a request");
    assert_eq!(foreign.data.get("status"), None::<&Value>);
    // A template may come after its request.
    cluster.apply(&only_request("patient", 1, "gang.muster.sh")).await.expect("a request");
    cluster
        .until("its condition names what is missing", async || {
            condition(&cluster, "patient", "Accepted").await
        })
        .await;
    cluster.apply(&template("patient", 8, "")).await.expect("a template");
    until_true(&cluster, "patient", "Provisioned").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn booking_survives_controller_kills_until_its_pods_use_it() {
    let Some(cluster) = karpenter_cluster().await else { return };
    let Some(()) = cluster.define_or_skip(&[KIND]).await else { return };
    cluster.apply(POOL).await.expect("a pool");
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&request("train", 4, 8)).await.expect("a request");
    until_true(&cluster, "train", "Provisioned").await;
    let (bought, booked) = (claims(&cluster).await, node_names(&cluster).await);
    assert_eq!((bought.len(), booked.len()), (4, 4));
    controller.kill();
    // Other pods come first, and still do not get the booked nodes.
    cluster.apply_as(Role::User, &job("other", 2, 8)).await.expect("a job");
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let elsewhere = until_bound(&cluster, "other", 2).await;
    assert!(booked.is_disjoint(&elsewhere), "{elsewhere:?} was booked");
    assert!(
        is_true(&cluster, "train", "Provisioned").await
            && !is_true(&cluster, "train", "BookingExpired").await
    );
    controller.kill();
    cluster.apply_as(Role::User, &job_for("train", 4)).await.expect("a job");
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    assert_eq!(until_bound(&cluster, "train", 4).await, booked);
    let all = claims(&cluster).await;
    assert!(all.is_superset(&bought) && all.len() <= 6, "{all:?}");
    controller.kill();
    // Once more: a used booking is not booked again, not even when its pods are done by then.
    until_done(&cluster, "train", 4).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let (reason, _) = until_true(&cluster, "train", "BookingExpired").await;
    assert_eq!(reason, "CapacityBookingConsumed");
    let now = claims(&cluster).await;
    assert!(now.is_subset(&all), "{now:?} of {all:?}");
    remove_jobs(&cluster).await;
    until_no_leftovers(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn booking_expires_in_time_and_is_revoked_with_its_node() {
    let Some(cluster) = kwok_cluster(3).await else { return };
    let Some(()) = cluster.define_or_skip(&[KIND]).await else { return };
    let controller = Controller::start(&cluster, &["--leader-elect=false", "--booking-ttl", "6s"]);
    cluster.apply(&request("idle", 3, 8)).await.expect("a request");
    until_true(&cluster, "idle", "Provisioned").await;
    let waits = pod("stranger", 8, "", "", "");
    cluster.apply_as(Role::User, &waits).await.expect("a pod");
    let (reason, _) = until_true(&cluster, "idle", "BookingExpired").await;
    assert_eq!(reason, "CapacityReservationTimeExpired");
    until_bound(&cluster, "stranger", 1).await;
    controller.kill();
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&request("unlucky", 2, 8)).await.expect("a request");
    until_true(&cluster, "unlucky", "Provisioned").await;
    // An expired booking stays expired.
    assert!(
        is_true(&cluster, "idle", "BookingExpired").await
            && !is_true(&cluster, "idle", "Failed").await
    );
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let taken = pods.get("stranger").await.expect("a pod").spec.and_then(|spec| spec.node_name);
    let lost = node_names(&cluster).await.into_iter().find(|node| Some(node) != taken.as_ref());
    let nodes: Api<Node> = Api::all(cluster.client(Role::Admin).await);
    nodes.delete(&lost.expect("a node"), &DeleteParams::default()).await.expect("deleted");
    until_true(&cluster, "unlucky", "CapacityRevoked").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn single_pods_use_booked_capacity_one_by_one() {
    let Some(cluster) = kwok_cluster(2).await else { return };
    let Some(()) = cluster.define_or_skip(&[KIND]).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // A pod that comes before its request waits for it.
    let annotation = format!("{CONSUMES}: pair");
    cluster.apply_as(Role::User, &pod("mine-0", 8, "", &annotation, "")).await.expect("a pod");
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(bound_with_prefix(&cluster, "mine").await, 0, "there is no such request yet");
    cluster.apply(&request("pair", 2, 8)).await.expect("a request");
    until_bound(&cluster, "mine", 1).await;
    assert!(
        is_true(&cluster, "pair", "Provisioned").await
            && !is_true(&cluster, "pair", "BookingExpired").await
    );
    cluster.apply_as(Role::User, &pod("stranger", 8, "", "", "")).await.expect("a pod");
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(bound_with_prefix(&cluster, "stranger").await, 0, "the other half is booked");
    let annotation = format!("{CONSUMES_OLD}: pair");
    cluster.apply_as(Role::User, &pod("mine-1", 8, "", &annotation, "")).await.expect("a pod");
    assert_eq!(until_bound(&cluster, "mine", 2).await.len(), 2);
    let (reason, _) = until_true(&cluster, "pair", "BookingExpired").await;
    assert_eq!(reason, "CapacityBookingConsumed");
}

/// A Job for the booking with its name, whose pods got an init container after the request was made.
fn job_with_more(name: &str, pods: u32, (cpu, memory): (&str, &str)) -> String {
    let more = format!(
        "      initContainers: [{{name: added, image: none, resources: {{requests: {{cpu: {cpu}, memory: {memory}}}}}}}]\n      containers:"
    );
    job_for(name, pods).replace("      containers:", &more)
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_slightly_larger_than_booked_use_the_booking() {
    let Some(cluster) = karpenter_cluster().await else { return };
    let Some(()) = cluster.define_or_skip(&[KIND]).await else { return };
    cluster.apply(POOL).await.expect("a pool");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&request("room", 2, 8)).await.expect("a request");
    until_true(&cluster, "room", "Provisioned").await;
    let before = until_claims(&cluster, 2).await;
    let booked = node_names(&cluster).await;
    let job = job_with_more("room", 2, ("50m", "10Mi"));
    cluster.apply_as(Role::User, &job).await.expect("a job");
    assert_eq!(until_bound(&cluster, "room", 2).await, booked);
    let (reason, _) = until_true(&cluster, "room", "BookingExpired").await;
    assert_eq!(reason, "CapacityBookingConsumed");
    tokio::time::sleep(A_WHILE).await;
    assert!(claims(&cluster).await.is_subset(&before), "nodes were bought twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn booking_its_pods_cannot_use_is_released_and_reported() {
    let setup = Setup::bare().with(Part::ControllerManager).with(Part::Kwok);
    let Some(cluster) = cluster_with_nodes(1, setup).await else { return };
    let Some(()) = cluster.define_or_skip(&[KIND]).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&request("room", 1, 8)).await.expect("a request");
    until_true(&cluster, "room", "Provisioned").await;
    // Of 64 CPUs on the booked node another pod uses 60.
    let other = pod("other", 0, "", "", "nodeName: n0").replace("cpu: 1", "cpu: 60");
    cluster.apply(&other).await.expect("a pod");
    cluster.apply(&node("n1")).await.expect("a node");
    let job = job_with_more("room", 1, ("30", "10Mi"));
    cluster.apply_as(Role::User, &job).await.expect("a job");
    let (reason, message) = until_true(&cluster, "room", "BookingExpired").await;
    assert_eq!(reason, "CapacityBookingMismatch", "{message}");
    assert!(message.contains("room.job") && message.contains("30 cpu"), "{message}");
    until_event(&cluster, "room", "CapacityBookingMismatch", "30 cpu").await;
    // The event of the gang is on its Job, since it has no Gang object yet.
    until_event(&cluster, "room", "CapacityBookingMismatch", "is released").await;
    assert_eq!(until_bound(&cluster, "room-", 1).await, BTreeSet::from(["n1".to_owned()]));
    // The booked node is free for others.
    cluster.apply(&pod("next", 8, "", "", "")).await.expect("a pod");
    assert_eq!(until_bound(&cluster, "next", 1).await, BTreeSet::from(["n0".to_owned()]));
}
