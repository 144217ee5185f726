//! A tenant resizes its workloads, or books capacity without pods, to keep others from starting.

use kube::api::{Api, DynamicObject};
use muster_testkit::cluster::{Part, Role, Setup};

use super::tenancy::gang;
use super::{TENANT, Tenancy, VICTIM};
use crate::fixture::controller::Controller;
use crate::observer::{Kind, LEAST};

/// A Gang of the tenant with these bounds.
fn sized(min: u32, max: u32) -> String {
    let text = gang(TENANT, "yoyo", min, 8, "");
    let text = text.replace(&format!("min: {min},"), &format!("min: {min}, max: {max},"));
    text.replace(&format!("{LEAST}: '{min}'"), &format!("{LEAST}: '1'"))
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_that_resizes_repeatedly_evicts_no_other_member() {
    let Some(tenancy) = Tenancy::start(6).await else { return };
    let _controller = Controller::start(&tenancy, &["--leader-elect=false"]);
    tenancy.victim_starts("train", 2, 8).await;
    let before: Vec<_> =
        tenancy.pods(VICTIM).await.into_iter().map(|pod| pod.metadata.uid).collect();
    tenancy.tenant_applies(&sized(1, 4)).await;
    tenancy.until_bound(TENANT, "yoyo", 4).await;
    for (min, max) in [(1, 1), (4, 4), (2, 3), (1, 4), (3, 3), (1, 2)].repeat(3) {
        tenancy.tenant_applies(&sized(min, max)).await;
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
    tenancy.tenant_applies(&sized(1, 2)).await;
    tenancy.until_bound(TENANT, "yoyo", 2).await;
    tenancy.until_event(TENANT, "Shrunk", "members").await;
    tenancy.until_status(VICTIM, "train", |status| status["phase"] == "Running").await;
    // Nodes that the tenant released are free for others, and no pod was evicted for it.
    tenancy.victim_starts("next", 2, 8).await;
    let after: Vec<_> =
        tenancy.pods(VICTIM).await.into_iter().map(|pod| pod.metadata.uid).collect();
    assert!(before.iter().all(|uid| after.contains(uid)), "a member of another was evicted");
    assert_eq!(tenancy.bound(TENANT, "yoyo").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn booking_without_pods_expires_and_the_victim_starts() {
    let Some(tenancy) = Tenancy::with(2, Setup::bare().with(Part::Kwok)).await else { return };
    let kind = "cluster-autoscaler/autoscaling.x-k8s.io_provisioningrequests";
    let Some(()) = tenancy.define_or_skip(&[kind]).await else { return };
    let _controller = Controller::start(&tenancy, &["--leader-elect=false", "--booking-ttl", "5s"]);
    let request = "
apiVersion: v1
kind: PodTemplate
metadata: {name: never, namespace: team-a}
template:
  spec:
    containers: [{name: worker, image: none, resources: {limits: {nvidia.com/gpu: 8}}}]
---
apiVersion: autoscaling.x-k8s.io/v1
kind: ProvisioningRequest
metadata: {name: never, namespace: team-a}
spec:
  provisioningClassName: gang.muster.sh
  podSets: [{podTemplateRef: {name: never}, count: 2}]
";
    // Whether or not the tenant may write requests, the victim starts.
    let as_admin = tenancy.attempt(request).await.is_err();
    if as_admin {
        tenancy.apply(request).await.expect("a request");
    }
    let gangs: Api<DynamicObject> =
        Api::namespaced_with(tenancy.client(Role::Observer).await, TENANT, &Kind::Gang.resource());
    tenancy
        .until("the room is booked", async || {
            let booked = gangs.get_opt("never.request").await.ok()??;
            booked.data.pointer("/status/placement").is_some().then_some(())
        })
        .await;
    tenancy.victim_starts("train", 2, 8).await;
}
