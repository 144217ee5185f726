//! Kills the controller at random instants: no gang is left partial, and nothing is left over.

use std::time::{Duration, Instant};

use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use muster_testkit::cluster::{Cluster, Part, Role, Setup};

use crate::fixture::clusters::{cluster_with_nodes, karpenter_cluster};
use crate::fixture::controller::Controller;
use crate::fixture::fault_injection::Faults;
use crate::fixture::leftovers::{completed_jobs, remove_jobs, until_no_leftovers};
use crate::fixture::manifests::{POOL, QUEUE_WITH_PRIORITIES, gang, job};
use crate::fixture::objects::{custom_objects, submit};
use crate::fixture::pods::bound_with_prefix;
use crate::fixture::proxy::Proxy;
use crate::fixture::seeded_random::{SeededRandom, seed};
use crate::observer::ObservedCluster;

/// How often one test ends a controller: together 200 times, or `MUSTER_KILLS` times in each test where that is set.
fn kills(usually: u32) -> u32 {
    std::env::var("MUSTER_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(usually)
}

/// Kills while gangs come and go; half as many gangs run meanwhile.
const ALONE: u32 = 70;
/// Kills or stops of one of two replicas; half as many gangs run meanwhile.
const OF_TWO: u32 = 70;
/// Kills while gangs preempt each other.
const AMONG_RIVALS: u32 = 60;

/// Submits a gang of random size.
async fn submit_job(cluster: &Cluster, at: u32, random: &mut SeededRandom) {
    let (pods, gpus) = (1 + random.below(4) as u32, 1 << random.below(4));
    let job = job(&format!("train-{at}"), pods, gpus);
    submit(cluster, &job).await;
}

/// Asserts that every job completes, no gang was ever partial, and everything created for the jobs is gone after them.
async fn assert_settles(cluster: &ObservedCluster, gangs: u32, mut tend: impl FnMut()) {
    cluster
        .until("every job is done", async || {
            tend();
            (completed_jobs(cluster).await == gangs as usize).then_some(())
        })
        .await;
    cluster.assert_promises_kept().await;
    remove_jobs(cluster).await;
    until_no_leftovers(cluster).await;
    eprintln!("the longest window was {:?}", cluster.observer().window());
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_killed_repeatedly_leaves_no_gang_partial() {
    let Some(cluster) = karpenter_cluster().await else { return };
    cluster.apply(POOL).await.expect("a pool");
    let mut random = SeededRandom::new(seed());
    let kills = kills(ALONE);
    let gangs = kills / 2;
    for kill in 0..kills {
        if kill % 2 == 0 && kill / 2 < gangs {
            submit_job(&cluster, kill / 2, &mut random).await;
        }
        let controller = Controller::start(&cluster, &["--leader-elect=false"]);
        tokio::time::sleep(Duration::from_millis(100 + random.below(900))).await;
        controller.kill();
    }
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    assert_settles(&cluster, gangs, || {}).await;
}

/// Nodes that the gangs compete for: three gangs fill all of them.
const TOO_FEW: u32 = 6;

/// A gang that needs whole nodes and does not end by itself. Some preempt, some are preempted, some only shrink.
async fn submit_rival(cluster: &Cluster, name: &str, random: &mut SeededRandom) {
    let least = 1 + random.below(3) as u32;
    let size = match random.happens(300) {
        true => format!("min: {least}, max: {}", least + 2),
        false => format!("min: {least}"),
    };
    let priority = 100 * random.below(4);
    let more = format!("priority: {priority}\n  disruption: {{grace: 0s}}");
    let yaml = gang(name, &size, least, 8, &more);
    cluster.until("it is submitted", async || cluster.apply(&yaml).await.ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gangs_that_preempt_never_share_a_seat_across_kills() {
    let setup = Setup::bare().with(Part::ControllerManager).with(Part::Kwok);
    let Some(cluster) = cluster_with_nodes(TOO_FEW, setup).await else { return };
    cluster.apply(QUEUE_WITH_PRIORITIES).await.expect("a queue");
    let kind = GroupVersionKind::gvk("muster.sh", "v1alpha1", "Gang");
    let kind = ApiResource::from_gvk(&kind);
    let client = cluster.client(Role::Admin).await;
    let all: Api<DynamicObject> = Api::namespaced_with(client, "default", &kind);
    let mut random = SeededRandom::new(seed());
    let mut there: Vec<String> = Vec::new();
    let mut names = (0..).map(|at| format!("rival-{at}"));
    let mut evicted = 0;
    for _ in 0..kills(AMONG_RIVALS) {
        // Twice as many gangs as fit, so that a deleted gang leaves its seats to another.
        while there.len() < TOO_FEW as usize {
            let name = names.next().expect("endless");
            submit_rival(&cluster, &name, &mut random).await;
            there.push(name);
        }
        let controller = Controller::start(&cluster, &["--leader-elect=false"]);
        tokio::time::sleep(Duration::from_millis(100 + random.below(1_400))).await;
        let gone = there.remove(random.below(there.len() as u64) as usize);
        all.delete(&gone, &DeleteParams::background()).await.expect("removed");
        tokio::time::sleep(Duration::from_millis(random.below(150))).await;
        controller.kill();
        evicted += cluster.observer().evicted(&gone);
    }
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    for name in &there {
        all.delete(name, &DeleteParams::background()).await.expect("removed");
    }
    until_no_leftovers(&cluster).await;
    cluster.assert_promises_kept().await;
    evicted += there.iter().map(|name| cluster.observer().evicted(name)).sum::<usize>();
    eprintln!("{evicted} were evicted; the longest window {:?}", cluster.observer().window());
    assert!(evicted > 0, "no gang was preempted");
}

/// Whether a gang's status has a placement.
async fn has_placement(cluster: &Cluster, gang: &str) -> bool {
    let gangs = custom_objects(cluster, ("muster.sh", "v1alpha1"), ("Gang", "gangs")).await;
    let all = gangs.list(&ListParams::default()).await.expect("gangs").items;
    let mine = all.iter().filter(|object| object.name_any().contains(gang));
    mine.into_iter().any(|object| {
        let status = &object.data["status"]["placement"];
        status.as_array().is_some_and(|seats| !seats.is_empty())
    })
}

/// How often a controller is killed while it binds.
const WHILE_BINDING: u32 = 4;

#[tokio::test(flavor = "multi_thread")]
async fn controller_killed_while_binding_leaves_a_placement_to_finish() {
    let setup = Setup::bare().with(Part::ControllerManager).with(Part::Kwok);
    let Some(cluster) = cluster_with_nodes(8, setup).await else { return };
    let proxy = Proxy::start(&cluster, seed()).await;
    proxy.set(Faults { slow: 700, ..Faults::NONE });
    let mut in_part = 0;
    for at in 0..WHILE_BINDING {
        let name = format!("train-{at}");
        submit(&cluster, &job(&name, 4, 4)).await;
        let controller = Controller::start_through(&proxy, &cluster, &["--leader-elect=false"]);
        let bound = cluster
            .until("the first is bound", async || {
                Some(bound_with_prefix(&cluster, &name).await).filter(|bound| *bound > 0)
            })
            .await;
        controller.kill();
        assert!(has_placement(&cluster, &name).await, "{name} is bound without a placement");
        in_part += u32::from(bound < 4);
        let next = Controller::start(&cluster, &["--leader-elect=false"]);
        let whole = async || (bound_with_prefix(&cluster, &name).await == 4).then_some(());
        cluster.until("the rest is bound", whole).await;
        next.kill();
    }
    eprintln!("{in_part} of {WHILE_BINDING} were bound in part");
    assert!(in_part > 0, "no controller was killed while it bound");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    assert_settles(&cluster, WHILE_BINDING, || {}).await;
}

/// A replica by its number. Each process has its own identity, also after a restart.
fn replica(cluster: &Cluster, number: u32) -> Controller {
    let name = format!("replica-{number}");
    Controller::start(cluster, &["--identity", &name, "--lease-duration", "3s"])
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_ending_at_any_instant_leave_no_gang_partial() {
    let Some(cluster) = karpenter_cluster().await else { return };
    cluster.apply(POOL).await.expect("a pool");
    let mut random = SeededRandom::new(seed());
    let kills = kills(OF_TWO);
    let gangs = kills / 2;
    let mut number = kills + 2;
    // A replica whose lease expired exits by itself, and is restarted as a Deployment would.
    let mut tend = |replicas: &mut [Controller; 2]| {
        for one in replicas.iter_mut().filter_map(|one| one.has_ended().then_some(one)) {
            number += 1;
            *one = replica(&cluster, number);
        }
    };
    let mut replicas = [replica(&cluster, 0), replica(&cluster, 1)];
    let (mut killed, mut stopped) = (0, 0);
    let began = Instant::now();
    for kill in 0..kills {
        if kill % 2 == 0 && kill / 2 < gangs {
            submit_job(&cluster, kill / 2, &mut random).await;
        }
        tokio::time::sleep(Duration::from_millis(100 + random.below(1_900))).await;
        let which = random.below(2) as usize;
        let old = std::mem::replace(&mut replicas[which], replica(&cluster, kill + 2));
        if random.happens(500) {
            old.kill();
            killed += 1;
        } else {
            old.stop();
            stopped += 1;
        }
        tend(&mut replicas);
    }
    let took = began.elapsed();
    eprintln!("{killed} killed and {stopped} stopped within {took:?}, {gangs} gangs");
    assert_settles(&cluster, gangs, || tend(&mut replicas)).await;
}
