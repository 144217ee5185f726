//! Orders that are cancelled before their NodeClaims exist.

use std::time::{Duration, Instant};

use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use muster_testkit::cluster::Role;

use crate::fixture::api_request::{ApiRequest, Verb};
use crate::fixture::clusters::karpenter_cluster;
use crate::fixture::controller::Controller;
use crate::fixture::leftovers::{remove_jobs, until_no_leftovers};
use crate::fixture::manifests::{POOL, job};
use crate::fixture::objects::submit;
use crate::fixture::pods::bound_pods;
use crate::fixture::proxy::Proxy;
use crate::fixture::unreachable_webhook::{UNREACHABLE_WEBHOOK, remove_unreachable_webhook};

/// The longest backoff of the controller.
const LONGEST_PAUSE: Duration = Duration::from_secs(16);

#[tokio::test(flavor = "multi_thread")]
async fn claim_of_a_cancelled_order_is_not_created_later() {
    let Some(cluster) = karpenter_cluster().await else { return };
    cluster.apply(UNREACHABLE_WEBHOOK).await.expect("a webhook");
    cluster.apply(POOL).await.expect("a pool");
    let proxy = Proxy::start(&cluster, 1).await;
    let _controller = Controller::start_through(&proxy, &cluster, &["--leader-elect=false"]);
    let began = Instant::now();
    let asks = |since: Instant| {
        let requests = proxy.requests_since(since);
        let is_it = |one: &&ApiRequest| one.verb == Verb::Create && one.resource == "nodeclaims";
        requests.iter().filter(is_it).count()
    };
    submit(&cluster, &job("lost", 4, 8)).await;
    cluster
        .until("each claim is requested repeatedly", async || (asks(began) >= 16).then_some(()))
        .await;
    remove_jobs(&cluster).await;
    let client = cluster.client(Role::Admin).await;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("muster.sh", "v1alpha1", "Order"));
    let orders: Api<DynamicObject> = Api::all_with(client, &kind);
    cluster
        .until("its order is cancelled", async || {
            let left = orders.list(&ListParams::default()).await.ok()?.items;
            left.is_empty().then_some(())
        })
        .await;
    remove_unreachable_webhook(&cluster).await;
    let healed = Instant::now();
    submit(&cluster, &job("next", 1, 8)).await;
    cluster.until("the next runs", async || (bound_pods(&cluster).await == 1).then_some(())).await;
    remove_jobs(&cluster).await;
    until_no_leftovers(&cluster).await;
    cluster
        .until("no retry is pending", async || (healed.elapsed() > LONGEST_PAUSE).then_some(()))
        .await;
    assert_eq!(asks(healed), 1, "claims of the cancelled order were requested");
}
