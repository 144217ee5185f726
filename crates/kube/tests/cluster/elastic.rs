//! Gangs with a choice: they start with what fits, grow into room that comes free, give it back to those who need it, and
//! never go below their least.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::Api;
use muster_testkit::cluster::{Cluster, Role, Setup};

use crate::controller::Controller;
use crate::gates::{node_of, planned, pods_of, until_bound};
use crate::refusal::{allow, refuse};
use crate::stage::{gang_status, leaving, let_end, small_cluster, still, until_event, until_told};
use crate::words::{PRIORITIES, gang, node, still_node};

/// A gang of so many to so many workers with so many GPUs each.
fn elastic(name: &str, (min, max): (u32, u32), gpus: u32, more: &str) -> String {
    gang(name, &format!("min: {min}, max: {max}"), min, gpus, more)
}

/// A gang of so many workers, no more and no fewer.
fn rigid(name: &str, members: u32, gpus: u32, more: &str) -> String {
    gang(name, &format!("min: {members}"), members, gpus, more)
}

/// The indexes of a gang's workers that are on nodes.
async fn indexes(cluster: &Cluster, gang: &str) -> Vec<u32> {
    let pods = pods_of(cluster, &format!("{gang}-worker-")).await;
    let bound = pods.iter().filter(|pod| node_of(pod).is_some());
    let mut found: Vec<u32> = bound
        .filter_map(|pod| pod.labels().get("muster.sh/index").and_then(|at| at.parse().ok()))
        .collect();
    found.sort_unstable();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_starts_with_what_fits_grows_and_gives_back_but_never_below_its_least() {
    let Some(cluster) = small_cluster(1).await else { return };
    cluster.apply(PRIORITIES).await.expect("a queue");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&elastic("train", (2, 4), 4, "")).await.expect("a gang");
    until_bound(&cluster, "train", 2).await;
    assert_eq!(indexes(&cluster, "train").await, [0, 1]);
    until_told(&cluster, "train", |status| status["members"]["ready"] == 2).await;
    // Room comes free, and it takes it.
    cluster.apply(&node("n1")).await.expect("a node");
    until_bound(&cluster, "train", 4).await;
    until_event(&cluster, "train", "Growing", "to 4 members").await;
    until_told(&cluster, "train", |status| {
        status["phase"] == "Running"
            && status["members"]["ready"] == 4
            && status["message"] == "running with 4 members"
            && status["placement"].as_array().is_some_and(|all| all.len() == 2)
    })
    .await;
    // Somebody of higher standing needs some of it: those who came last go.
    for (at, name) in ["urgent", "pressing"].into_iter().enumerate() {
        cluster.apply(&rigid(name, 1, 4, "priority: 100")).await.expect("a gang");
        until_bound(&cluster, name, 1).await;
        let left: Vec<u32> = (0..3 - at as u32).collect();
        assert_eq!(indexes(&cluster, "train").await, left);
        let why = format!("to make room for default/{name}");
        until_event(&cluster, "train", "Shrinking", &why).await;
    }
    // It has no more to give: who is not of higher priority waits, and those who were sent away wait with it.
    cluster.apply(&rigid("later", 1, 4, "")).await.expect("a gang");
    until_told(&cluster, "later", |status| status["phase"] == "Waiting").await;
    assert_eq!(indexes(&cluster, "train").await, [0, 1]);
    cluster
        .until("all four are there, two of them nowhere", async || {
            (pods_of(&cluster, "train").await.len() == 4).then_some(())
        })
        .await;
    assert_eq!(gang_status(&cluster, "train").await["phase"], "Running");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_with_the_lowest_indexes_come_first_and_go_last() {
    let Some(cluster) = small_cluster(1).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&elastic("train", (2, 12), 1, "")).await.expect("a gang");
    until_bound(&cluster, "train", 8).await;
    assert_eq!(indexes(&cluster, "train").await, [0, 1, 2, 3, 4, 5, 6, 7]);
    cluster.apply(&rigid("other", 1, 5, "")).await.expect("a gang");
    until_bound(&cluster, "other", 1).await;
    assert_eq!(indexes(&cluster, "train").await, [0, 1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_killed_while_a_gang_grows_finishes_it_and_puts_nobody_on_top() {
    let Some(cluster) = still(1, Setup::bare()).await else { return };
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&elastic("train", (2, 4), 4, "")).await.expect("a gang");
    until_bound(&cluster, "train", 2).await;
    until_told(&cluster, "train", |status| status["phase"] == "Running").await;
    // Whatever is to be written down of it is refused, so that nothing may come of it.
    let unless = "object.status.placement.size() < 2";
    refuse(&cluster, ("muster.sh", "gangs/status"), "train", unless).await;
    tokio::time::sleep(Duration::from_secs(1)).await; // until every part of the server knows the policy
    cluster.apply(&still_node("n1")).await.expect("a node");
    until_event(&cluster, "train", "Growing", "from 2 to 4 members").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(indexes(&cluster, "train").await, [0, 1], "bound before it was written down");
    controller.kill();
    allow(&cluster).await;
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_bound(&cluster, "train", 4).await;
    // At any later instant, too.
    controller.kill();
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&rigid("rival", 1, 4, "")).await.expect("a gang");
    cluster
        .until("one is told to make way", async || {
            (leaving(&cluster, "train").await.len() == 1).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_killed_while_a_gang_shrinks_finishes_it() {
    let Some(cluster) = still(4, Setup::bare()).await else { return };
    cluster.apply(PRIORITIES).await.expect("a queue");
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let train = elastic("train", (2, 4), 8, "disruption: {grace: 40s}");
    cluster.apply(&train).await.expect("a gang");
    until_bound(&cluster, "train", 4).await;
    cluster.apply(&rigid("rival", 2, 8, "priority: 100")).await.expect("a gang");
    let told = cluster
        .until("two are told to go", async || {
            Some(leaving(&cluster, "train").await).filter(|leaving| leaving.len() == 2)
        })
        .await;
    assert!(told.iter().all(|pod| pod.metadata.deletion_grace_period_seconds == Some(40)));
    controller.kill();
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // They have their time, whoever leads: the first to go makes room for nobody.
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let_end(&cluster, &told[..1]).await;
    cluster
        .until("the one that is gone is made again", async || {
            let pod = pods.get_opt(&told[0].name_any()).await.ok()??;
            (pod.metadata.uid != told[0].metadata.uid).then_some(())
        })
        .await;
    until_told(&cluster, "rival", |status| status["phase"] == "Provisioning").await;
    assert_eq!(indexes(&cluster, "train").await.len(), 3);
    let_end(&cluster, &told[1..]).await;
    until_bound(&cluster, "rival", 2).await;
    until_bound(&cluster, "train", 2).await;
    until_told(&cluster, "train", |status| status["members"]["ready"] == 2).await;
    assert_eq!(planned(&cluster, "train").await.values().sum::<i64>(), 2);
}
