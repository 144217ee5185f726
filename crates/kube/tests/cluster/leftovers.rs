//! What must not be there any more when everybody is done.

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams};
use muster_kube::objects::NodeClaim;
use muster_testkit::cluster::{Cluster, Role};

/// Jobs that ran to their end.
pub(crate) async fn done(cluster: &Cluster) -> usize {
    let jobs: Api<Job> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let all = jobs.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
    let is_done =
        |job: &&Job| job.status.as_ref().is_some_and(|status| status.completion_time.is_some());
    all.iter().filter(is_done).count()
}

/// Removes every job, with its pods.
pub(crate) async fn remove_jobs(cluster: &Cluster) {
    let jobs: Api<Job> = Api::namespaced(cluster.client(Role::User).await, "default");
    let how = DeleteParams::background();
    cluster
        .until("every job is removed", async || {
            jobs.delete_collection(&how, &ListParams::default()).await.ok().map(drop)
        })
        .await;
}

/// Nodes that were asked for, orders that were written down, gangs that Muster made: of all that, what is there.
pub(crate) async fn leftovers(cluster: &Cluster) -> kube::Result<Vec<String>> {
    let client = cluster.client(Role::Observer).await;
    let all = ListParams::default();
    let claims: Api<NodeClaim> = Api::all(client.clone());
    let claims = match claims.list(&all).await {
        // Nobody makes nodes here.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        claims => claims?.items,
    };
    let mut left: Vec<String> =
        claims.iter().map(|claim| format!("claim {}", claim.name_any())).collect();
    for (kind, plural) in [("Order", "orders"), ("Gang", "gangs")] {
        let resource = ApiResource {
            group: "muster.sh".to_owned(),
            version: "v1alpha1".to_owned(),
            api_version: "muster.sh/v1alpha1".to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let objects = objects.list(&all).await?.items;
        left.extend(objects.iter().map(|object| format!("{kind} {}", object.name_any())));
    }
    Ok(left)
}

/// Waits until nothing is left over. What stays is said.
pub(crate) async fn until_none_are_left(cluster: &Cluster) {
    let mut last = Vec::new();
    cluster
        .until("nothing is left over", async || {
            let left = leftovers(cluster).await.ok()?;
            if left != last {
                eprintln!("still there: {}", left.len());
                last.clone_from(&left);
            }
            left.is_empty().then_some(())
        })
        .await;
}
