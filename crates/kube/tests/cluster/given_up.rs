//! Nodes that were given up before they were bought.

use std::time::{Duration, Instant};

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use muster_testkit::cluster::{Cluster, Role};

use crate::asked::{Asked, Verb};
use crate::controller::Controller;
use crate::leftovers::{remove_jobs, until_none_are_left};
use crate::proxy::Proxy;
use crate::stage::{self, bound};
use crate::words::{POOL, job};

/// Who is asked about every NodeClaim that is to be made, and never answers.
pub(crate) const NOBODY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: nobody}
webhooks:
- name: nobody.example.com
  clientConfig: {url: 'https://127.0.0.1:1/'}
  rules: [{apiGroups: [karpenter.sh], apiVersions: ['*'], operations: [CREATE], resources: [nodeclaims]}]
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
";

/// NodeClaims are made as ever.
pub(crate) async fn ask_nobody_any_more(cluster: &Cluster) {
    let client = cluster.client(Role::Admin).await;
    let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(client);
    webhooks.delete("nobody", &DeleteParams::default()).await.expect("it goes");
}

/// The longest that the controller waits before it asks again.
const LONGEST_PAUSE: Duration = Duration::from_secs(16);

#[tokio::test(flavor = "multi_thread")]
async fn what_was_given_up_before_the_server_took_it_is_not_bought_after_all() {
    let Some(cluster) = stage::cluster().await else { return };
    cluster.apply(NOBODY).await.expect("a webhook");
    cluster.apply(POOL).await.expect("a pool");
    let proxy = Proxy::start(&cluster, 1).await;
    let _controller = Controller::behind(&proxy, &cluster, &["--leader-elect=false"]);
    let began = Instant::now();
    let asks = |since: Instant| {
        let asked = proxy.asked(since);
        let is_it = |one: &&Asked| one.verb == Verb::Create && one.resource == "nodeclaims";
        asked.iter().filter(is_it).count()
    };
    stage::submit(&cluster, &job("lost", 4, 8)).await;
    cluster
        .until("each is asked for time and again", async || (asks(began) >= 16).then_some(()))
        .await;
    remove_jobs(&cluster).await;
    let client = cluster.client(Role::Admin).await;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("muster.sh", "v1alpha1", "Order"));
    let orders: Api<DynamicObject> = Api::all_with(client, &kind);
    cluster
        .until("its order is given up", async || {
            let left = orders.list(&ListParams::default()).await.ok()?.items;
            left.is_empty().then_some(())
        })
        .await;
    ask_nobody_any_more(&cluster).await;
    let healed = Instant::now();
    stage::submit(&cluster, &job("next", 1, 8)).await;
    cluster.until("the next runs", async || (bound(&cluster).await == 1).then_some(())).await;
    remove_jobs(&cluster).await;
    until_none_are_left(&cluster).await;
    cluster
        .until("nobody waits for another try any more", async || {
            (healed.elapsed() > LONGEST_PAUSE).then_some(())
        })
        .await;
    assert_eq!(asks(healed), 1, "what was given up was asked for");
}
