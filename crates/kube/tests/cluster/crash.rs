//! Killed at any instant, again and again: nothing is half done, nothing is left over.

use std::time::{Duration, Instant};

use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use muster_testkit::cluster::{Cluster, Part, Role, Setup};

use crate::chance::{Chance, seed};
use crate::controller::Controller;
use crate::fate::Faults;
use crate::leftovers::{done, remove_jobs, until_none_are_left};
use crate::observer::Observed;
use crate::proxy::Proxy;
use crate::stage;
use crate::words::{POOL, PRIORITIES, gang, job};

/// How often a controller is ended in one test, so that it is 200 times in all of them together; and as often as
/// `MUSTER_KILLS` says in each of them where it is set.
fn kills(usually: u32) -> u32 {
    std::env::var("MUSTER_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(usually)
}

/// Killed while gangs that find their nodes come and go; half as many gangs run meanwhile.
const ALONE: u32 = 70;
/// Killed or told to end, as one of two replicas; half as many gangs run meanwhile.
const OF_TWO: u32 = 70;
/// Killed while gangs stop each other.
const AMONG_RIVALS: u32 = 60;

/// Submits a gang of some size.
async fn submit(cluster: &Cluster, at: u32, chance: &mut Chance) {
    let (pods, gpus) = (1 + chance.below(4) as u32, 1 << chance.below(4));
    let job = job(&format!("train-{at}"), pods, gpus);
    stage::submit(cluster, &job).await;
}

/// Every job is done, nobody was ever half started, and when the jobs are gone so is everything made for them.
async fn settles(cluster: &Observed, gangs: u32, mut tend: impl FnMut()) {
    cluster
        .until("every job is done", async || {
            tend();
            (done(cluster).await == gangs as usize).then_some(())
        })
        .await;
    cluster.is_as_promised().await;
    remove_jobs(cluster).await;
    until_none_are_left(cluster).await;
    eprintln!("the longest window was {:?}", cluster.observer().window());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_is_killed_again_and_again_leaves_nothing_half_done() {
    let Some(cluster) = stage::cluster().await else { return };
    cluster.apply(POOL).await.expect("a pool");
    let mut chance = Chance::new(seed());
    let kills = kills(ALONE);
    let gangs = kills / 2;
    for kill in 0..kills {
        if kill % 2 == 0 && kill / 2 < gangs {
            submit(&cluster, kill / 2, &mut chance).await;
        }
        let controller = Controller::start(&cluster, &["--leader-elect=false"]);
        tokio::time::sleep(Duration::from_millis(100 + chance.below(900))).await;
        controller.kill();
    }
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    settles(&cluster, gangs, || {}).await;
}

/// Nodes that rivals share: three of them have all.
const TOO_FEW: u32 = 6;

/// A gang that wants whole nodes and does not end by itself. Some stop others, some are stopped, some only shrink.
async fn submit_rival(cluster: &Cluster, name: &str, chance: &mut Chance) {
    let least = 1 + chance.below(3) as u32;
    let size = match chance.strikes(300) {
        true => format!("min: {least}, max: {}", least + 2),
        false => format!("min: {least}"),
    };
    let priority = 100 * chance.below(4);
    let more = format!("priority: {priority}\n  disruption: {{grace: 0s}}");
    let yaml = gang(name, &size, least, 8, &more);
    cluster.until("it is submitted", async || cluster.apply(&yaml).await.ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rivals_for_too_few_nodes_never_have_the_same_seat_however_often_it_is_killed() {
    let setup = Setup::bare().with(Part::ControllerManager).with(Part::Kwok);
    let Some(cluster) = stage::with_nodes(TOO_FEW, setup).await else { return };
    cluster.apply(PRIORITIES).await.expect("a queue");
    let kind = GroupVersionKind::gvk("muster.sh", "v1alpha1", "Gang");
    let kind = ApiResource::from_gvk(&kind);
    let client = cluster.client(Role::Admin).await;
    let all: Api<DynamicObject> = Api::namespaced_with(client, "default", &kind);
    let mut chance = Chance::new(seed());
    let mut there: Vec<String> = Vec::new();
    let mut names = (0..).map(|at| format!("rival-{at}"));
    let mut sent_away = 0;
    for _ in 0..kills(AMONG_RIVALS) {
        // Twice as many as there is room for, so that whoever goes leaves its seats to somebody.
        while there.len() < TOO_FEW as usize {
            let name = names.next().expect("endless");
            submit_rival(&cluster, &name, &mut chance).await;
            there.push(name);
        }
        let controller = Controller::start(&cluster, &["--leader-elect=false"]);
        tokio::time::sleep(Duration::from_millis(100 + chance.below(1_400))).await;
        let gone = there.remove(chance.below(there.len() as u64) as usize);
        all.delete(&gone, &DeleteParams::background()).await.expect("removed");
        tokio::time::sleep(Duration::from_millis(chance.below(150))).await;
        controller.kill();
        sent_away += cluster.observer().sent_away(&gone);
    }
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    for name in &there {
        all.delete(name, &DeleteParams::background()).await.expect("removed");
    }
    until_none_are_left(&cluster).await;
    cluster.is_as_promised().await;
    sent_away += there.iter().map(|name| cluster.observer().sent_away(name)).sum::<usize>();
    eprintln!("{sent_away} were sent away; the longest window {:?}", cluster.observer().window());
    assert!(sent_away > 0, "nobody was anybody's rival");
}

/// Whether a gang's status says where it goes.
async fn written(cluster: &Cluster, gang: &str) -> bool {
    let gangs = stage::objects(cluster, ("muster.sh", "v1alpha1"), ("Gang", "gangs")).await;
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
async fn a_controller_killed_while_it_binds_has_written_down_where_and_the_next_one_goes_on() {
    let setup = Setup::bare().with(Part::ControllerManager).with(Part::Kwok);
    let Some(cluster) = stage::with_nodes(8, setup).await else { return };
    let proxy = Proxy::start(&cluster, seed()).await;
    proxy.set(Faults { slow: 700, ..Faults::NONE });
    let mut in_part = 0;
    for at in 0..WHILE_BINDING {
        let name = format!("train-{at}");
        stage::submit(&cluster, &job(&name, 4, 4)).await;
        let controller = Controller::behind(&proxy, &cluster, &["--leader-elect=false"]);
        let bound = cluster
            .until("the first is bound", async || {
                Some(stage::bound_of(&cluster, &name).await).filter(|bound| *bound > 0)
            })
            .await;
        controller.kill();
        assert!(written(&cluster, &name).await, "{name} is bound and nobody wrote where");
        in_part += u32::from(bound < 4);
        let next = Controller::start(&cluster, &["--leader-elect=false"]);
        let whole = async || (stage::bound_of(&cluster, &name).await == 4).then_some(());
        cluster.until("the rest is bound", whole).await;
        next.kill();
    }
    eprintln!("{in_part} of {WHILE_BINDING} were bound in part");
    assert!(in_part > 0, "nobody was killed while it bound");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    settles(&cluster, WHILE_BINDING, || {}).await;
}

/// A replica by its number. Each has a name of its own, also after it began anew: it is another process.
fn replica(cluster: &Cluster, number: u32) -> Controller {
    let name = format!("replica-{number}");
    Controller::start(cluster, &["--identity", &name, "--lease-duration", "3s"])
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_of_which_either_ends_at_any_instant_leave_nothing_half_done() {
    let Some(cluster) = stage::cluster().await else { return };
    cluster.apply(POOL).await.expect("a pool");
    let mut chance = Chance::new(seed());
    let kills = kills(OF_TWO);
    let gangs = kills / 2;
    let mut number = kills + 2;
    // One whose lease ran out ends by itself, and is started again like any program.
    let mut tend = |replicas: &mut [Controller; 2]| {
        for one in replicas.iter_mut().filter_map(|one| one.has_ended().then_some(one)) {
            number += 1;
            *one = replica(&cluster, number);
        }
    };
    let mut replicas = [replica(&cluster, 0), replica(&cluster, 1)];
    let (mut killed, mut told) = (0, 0);
    let began = Instant::now();
    for kill in 0..kills {
        if kill % 2 == 0 && kill / 2 < gangs {
            submit(&cluster, kill / 2, &mut chance).await;
        }
        tokio::time::sleep(Duration::from_millis(100 + chance.below(1_900))).await;
        let which = chance.below(2) as usize;
        let old = std::mem::replace(&mut replicas[which], replica(&cluster, kill + 2));
        if chance.strikes(500) {
            old.kill();
            killed += 1;
        } else {
            old.stop();
            told += 1;
        }
        tend(&mut replicas);
    }
    let took = began.elapsed();
    eprintln!("{killed} killed and {told} told to end within {took:?}, {gangs} gangs");
    settles(&cluster, gangs, || tend(&mut replicas)).await;
}
