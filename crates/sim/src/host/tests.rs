//! How the host executes actions, without a planner: every action here is made by hand.

use std::cell::RefCell;
use std::rc::Rc;

use muster_core::Fact;
use muster_core::device::{Devices, WHOLE};
use muster_core::gang::{Checkpoint, GangSpec, Seat, Signal};
use muster_core::id::{GangId, NodeIdx};
use muster_core::plan::{Action, ActionGroup, Plan, StopReason};
use muster_core::time::{Span, Time};
use muster_plan::Policy;
use muster_testkit::build;

use crate::host::cluster::nodes::Outage;
use crate::host::options::SimOptions;
use crate::host::setup::Setup;
use crate::host::sim::Sim;
use crate::job::{Job, Nature};

const GANG: GangId = GangId(0);
const MOVED: StopReason = StopReason::Moved;

fn at(mins: u64) -> Time {
    Time::ZERO + Span::mins(mins)
}

/// All of a node of eight GPUs.
fn seat(node: u32) -> Seat {
    let devices = Devices::free(8).take(8, WHOLE).expect("an empty node");
    Seat { devices, node: NodeIdx(node), role: 0, members: 1 }
}

/// A gang of two whole nodes that takes an hour, saves within five minutes when told, by itself every ten
/// minutes, and takes two to start from that.
fn saving() -> Job {
    let mut gang = build::gang("a", 2, 8);
    gang.disruption.grace = Span::mins(5);
    gang.disruption.checkpoint = Some(Checkpoint {
        signal: Some(Signal::SigUsr1),
        every: Some(Span::mins(10)),
        restart: Span::mins(2),
    });
    Job::new(gang, Time::ZERO, Span::mins(60))
}

/// A gang of one to four whole nodes that takes an hour with four, and pauses for a minute when its members
/// change.
fn elastic(efficiency: u16) -> Job {
    let mut gang = build::gang("a", 1, 8);
    gang.roles[0].max = 4;
    (gang.scaling.efficiency, gang.scaling.resize) = (efficiency, Span::mins(1));
    Job::new(gang, Time::ZERO, Span::mins(60))
}

/// Four nodes and one gang, which has been submitted, and what happened to it.
struct Stage {
    sim: Sim,
    told: Rc<RefCell<Vec<String>>>,
}

impl Stage {
    fn new(job: Job) -> Self {
        Self::with_outages(job, Vec::new())
    }

    fn with_outages(job: Job, outages: Vec<Outage>) -> Self {
        let nodes = (0..4).map(|i| build::node(&format!("n{i}"), 8, &[])).collect();
        let setup = Setup { nodes, outages, jobs: vec![job], ..Setup::default() };
        let options = SimOptions { may_crash: true, ..SimOptions::default() };
        let mut sim = Sim::new(setup, Policy::default(), options).expect("a well-formed stage");
        let told: Rc<RefCell<Vec<String>>> = Rc::default();
        let lines = told.clone();
        sim.watch(Box::new(move |now, _, fact| {
            if let Some(what) = tell(fact) {
                lines.borrow_mut().push(format!("{:.1} {what}", now.as_secs_f64() / 60.0));
            }
        }));
        let mut stage = Self { sim, told };
        stage.drift(0);
        stage
    }
    /// Handles all events up to an instant, without planning.
    fn drift(&mut self, mins: u64) {
        while self.sim.event_queue.next_at().is_some_and(|next| next <= at(mins)) {
            let (now, what) = self.sim.event_queue.pop().expect("just peeked");
            self.sim.now = now;
            self.sim.handle(what);
        }
        self.sim.now = at(mins);
    }
    fn execute(&mut self, action: Action) {
        let group = ActionGroup { gang: Some(GANG), actions: vec![action] };
        self.sim.execute(&Plan { groups: vec![group], ..Plan::default() });
    }
    fn admit(&mut self, nodes: &[u32]) {
        self.execute(Action::Admit {
            gang: GANG,
            seats: nodes.iter().copied().map(seat).collect(),
        });
    }
    fn resize(&mut self, nodes: &[u32]) {
        self.execute(Action::Resize {
            gang: GANG,
            seats: nodes.iter().copied().map(seat).collect(),
        });
    }
    fn stop(&mut self, reason: StopReason) {
        self.execute(Action::Stop { gang: GANG, reason });
    }
    /// The facts so far, with times in minutes.
    fn told(&self) -> Vec<String> {
        self.told.borrow().clone()
    }
    fn last(&self) -> String {
        self.told.borrow().last().cloned().unwrap_or_default()
    }
    /// When the gang will be done.
    fn end(&self) -> Time {
        self.sim.progress[&GANG].end(self.sim.jobs[0].run)
    }
}

fn tell(fact: &Fact) -> Option<String> {
    Some(match fact {
        Fact::GangStarted { .. } => "started".to_owned(),
        Fact::GangStopping { .. } => "stopping".to_owned(),
        Fact::GangStopped { reason, .. } => format!("stopped {reason:?}"),
        Fact::GangResizing { from, to, .. } => format!("resizing {from} to {to}"),
        Fact::GangResized { .. } => "resized".to_owned(),
        Fact::ResizeDeclined { .. } => "declined".to_owned(),
        Fact::GangEnded { .. } => "ended".to_owned(),
        Fact::MembersStarted { node, .. } => format!("on {node:?}"),
        Fact::MembersStopped { node, .. } => format!("off {node:?}"),
        Fact::NodeNoticed { node, by } => format!("{node:?} goes at {}", by.0 / 60_000),
        Fact::NodeLost { node, .. } => format!("{node:?} lost"),
        _ => return None,
    })
}

/// The gang runs for so many minutes, is told to stop, and starts again as soon as it has.
fn stopped_and_started_again(job: Job, mins: u64, reason: StopReason) -> Stage {
    let mut stage = Stage::new(job);
    stage.admit(&[0, 1]);
    stage.drift(mins);
    stage.stop(reason);
    stage.drift(mins + 5);
    assert!(!stage.sim.running.contains_key(&GANG), "its grace is over: {:?}", stage.told());
    stage.admit(&[2, 3]);
    stage
}

#[test]
fn gang_that_saves_on_a_signal_works_until_then_and_loses_nothing() {
    let stage = stopped_and_started_again(saving(), 25, MOVED);
    let told = stage.told();
    let stopped: f64 = told[6].split(' ').next().and_then(|at| at.parse().ok()).expect("a time");
    assert!(told[3] == "25.0 stopping" && told[6].ends_with("stopped Moved"), "{told:?}");
    assert!((25.0..=30.0).contains(&stopped), "{told:?}");
    let stopped = stage.sim.world.gang(GANG).expect("it runs").work.kept;
    assert_eq!(stage.end(), at(30 + 2) + Span(Span::mins(60).0 - stopped.0));
    assert_eq!(stage.sim.accounts.meter().work().lost_gpu_ms, 0);
}

#[test]
fn gang_that_saves_periodically_loses_the_work_since() {
    let mut job = saving();
    let checkpoint = job.gang.disruption.checkpoint.as_mut().expect("it saves");
    checkpoint.signal = None;
    let stage = stopped_and_started_again(job, 25, MOVED);
    assert_eq!(stage.told()[3..6], ["25.0 stopping", "25.0 off n0", "25.0 off n1"], "at once");
    assert_eq!(stage.end(), at(30 + 2 + 40));
    let lost = stage.sim.accounts.meter();
    assert_eq!(lost.work().lost_gpu_ms, 16 * Span::mins(5).0);
    assert_eq!(lost.disruptions().evicted_gpu_ms, 16 * Span::mins(5).0);
}

#[test]
fn gang_without_checkpoints_starts_from_the_beginning() {
    let mut job = saving();
    job.gang.disruption.checkpoint = None;
    let stage = stopped_and_started_again(job, 25, MOVED);
    assert_eq!(stage.end(), at(30 + 60));
}

#[test]
fn lost_node_leaves_no_time_to_save() {
    let stage = stopped_and_started_again(saving(), 25, StopReason::NodeLost(NodeIdx(0)));
    assert_eq!(stage.told()[3], "25.0 off n0");
    assert_eq!(stage.end(), at(30 + 2 + 40));
}

#[test]
fn lost_node_ends_the_grace_period() {
    let outage = Outage { node: 1, at: at(25), notice: Span::ZERO, lasts: None };
    let mut stage = Stage::with_outages(saving(), vec![outage]);
    stage.admit(&[0, 1]);
    stage.drift(24);
    stage.stop(MOVED);
    assert!(stage.sim.grace_periods.contains_key(&GANG), "this seed takes its time");
    stage.drift(25);
    assert_eq!(stage.last(), "25.0 stopped Moved", "{:?}", stage.told());
    stage.admit(&[2, 3]);
    assert_eq!(stage.end(), at(25 + 2 + 40), "what was not saved by itself is lost");
}

#[test]
fn gang_that_ends_within_its_grace_is_done() {
    let mut job = saving();
    job.run = Span::mins(25) + Span::secs(1);
    let mut stage = Stage::new(job);
    stage.admit(&[0, 1]);
    stage.drift(25);
    stage.stop(MOVED);
    stage.drift(60);
    assert_eq!(stage.last(), "25.0 ended");
    assert_eq!((stage.sim.unfinished(), stage.sim.grace_periods.len()), (0, 0));
}

#[test]
fn crash_in_a_grace_period_changes_nothing() {
    let undisturbed = stopped_and_started_again(saving(), 25, MOVED).told();
    let mut stage = Stage::new(saving());
    stage.admit(&[0, 1]);
    stage.drift(25);
    stage.stop(MOVED);
    for _ in 0..2 {
        stage.sim.restart();
    }
    stage.drift(30);
    stage.admit(&[2, 3]);
    assert_eq!(stage.told(), undisturbed);
}

#[test]
fn logged_actions_are_executed_after_a_crash() {
    let mut stage = Stage::new(elastic(1_000));
    stage.admit(&[0]);
    stage.drift(20);
    stage.sim.log_decision(&Action::Resize { gang: GANG, seats: vec![seat(0), seat(1)] });
    stage.sim.restart();
    assert_eq!(stage.told()[2..], ["20.0 resizing 1 to 2", "20.0 on n1", "20.0 resized"]);
    stage.sim.log_decision(&Action::Stop { gang: GANG, reason: MOVED });
    stage.sim.restart();
    assert_eq!(stage.last(), "20.0 stopped Moved");
}

#[test]
fn more_members_are_faster_after_a_pause() {
    let mut stage = Stage::new(elastic(1_000));
    stage.admit(&[0]);
    assert_eq!(stage.end(), at(240));
    stage.drift(40);
    stage.resize(&[0, 1, 2, 3]);
    assert_eq!(stage.end(), at(40 + 1 + 50));
    stage.drift(91);
    assert_eq!(stage.last(), "91.0 ended");
    let meter = stage.sim.accounts.meter();
    assert_eq!(meter.work().busy_gpu_ms, 8 * Span::mins(40).0 + 32 * Span::mins(51).0);
    assert_eq!(meter.disruptions().paused_gpu_ms, 32 * Span::mins(1).0);
    assert_eq!((meter.disruptions().grown, meter.disruptions().resizes()), (1, 1));
}

#[test]
fn true_speed_up_applies_whatever_a_job_declares() {
    let mut job = elastic(1_000);
    job.nature.efficiency = Some(800);
    let mut stage = Stage::new(job);
    stage.admit(&[0]);
    assert_eq!(stage.end(), Time::ZERO + Span::from_secs_f64(3_600.0 * 1.6 * 1.6));
    stage.resize(&[0, 1]);
    stage.drift(5);
    assert_eq!(stage.sim.world.gang(GANG).and_then(|gang| gang.measured), None);
    stage.drift(6);
    assert_eq!(stage.sim.world.gang(GANG).and_then(|gang| gang.measured), Some(800));
}

#[test]
fn removed_members_work_until_they_have_saved() {
    let mut job = elastic(1_000);
    job.gang.disruption = saving().gang.disruption;
    let mut stage = Stage::new(job);
    stage.admit(&[0, 1, 2, 3]);
    stage.drift(20);
    stage.resize(&[0, 1, 2]);
    stage.resize(&[0, 1, 2]);
    assert_eq!(stage.last(), "20.0 resizing 4 to 3", "told twice is told once");
    stage.drift(25);
    let told = stage.told();
    assert!(told[6].ends_with("off n3") && told[7].ends_with("resized"), "{told:?}");
    let end = stage.end();
    // All four work for up to five minutes more; then a minute of pause, and three do the rest.
    let earliest = at(25 + 1) + Span(Span::mins(35).0 * 4 / 3);
    let latest = at(20 + 1) + Span(Span::mins(40).0 * 4 / 3);
    assert!(earliest <= end && end <= latest, "{end:?}");
    assert_eq!(stage.sim.world.gang(GANG).map(|gang| gang.seats.len()), Some(3));
}

#[test]
fn gang_may_decline_to_grow_but_not_to_shrink() {
    let mut job = elastic(1_000);
    job.nature = Nature { declines: 1_000, ..Nature::default() };
    let mut stage = Stage::new(job);
    stage.admit(&[0, 1]);
    stage.resize(&[0, 1, 2]);
    assert_eq!(stage.told()[3..], ["0.0 resizing 2 to 3", "0.0 declined"]);
    assert_eq!(stage.end(), at(120), "as without the resize");
    stage.resize(&[0]);
    assert_eq!(stage.last(), "0.0 resized");
}

#[test]
fn gang_that_goes_on_without_a_lost_node_resumes_from_its_checkpoint() {
    let outage = Outage { node: 1, at: at(25), notice: Span::ZERO, lasts: None };
    let mut job = elastic(1_000);
    job.gang.disruption = saving().gang.disruption;
    let mut stage = Stage::with_outages(job, vec![outage]);
    stage.admit(&[0, 1]);
    stage.drift(25);
    stage.resize(&[0, 2]);
    // It had done twelve and a half minutes of an hour's work, and saved ten.
    assert_eq!(stage.end(), at(25 + 1 + 100));
    assert!(stage.sim.world.broken().is_empty());
}

#[test]
fn nodes_go_after_their_notice_and_come_back() {
    let outage = Outage { node: 1, at: at(30), notice: Span::mins(2), lasts: Some(Span::mins(9)) };
    let mut stage = Stage::with_outages(saving(), vec![outage]);
    stage.drift(28);
    assert_eq!(stage.last(), "28.0 n1 goes at 30");
    assert!(stage.sim.world.node(NodeIdx(1)).is_some_and(|node| !node.takes_more()));
    stage.drift(30);
    assert_eq!((stage.last(), stage.sim.world.nodes().count()), ("30.0 n1 lost".to_owned(), 3));
    stage.drift(39);
    assert_eq!(stage.sim.world.nodes().filter(|(_, node)| node.takes_more()).count(), 4);
}

#[test]
fn nodes_with_notice_stay_when_faults_stop() {
    let outage = Outage { node: 1, at: at(30), notice: Span::mins(2), lasts: None };
    let mut stage = Stage::with_outages(saving(), vec![outage]);
    stage.drift(28);
    stage.sim.stop_faults();
    stage.drift(60);
    assert_eq!(stage.sim.world.nodes().filter(|(_, node)| node.takes_more()).count(), 4);
}

#[test]
fn cancelled_gang_ends_with_its_grace_period() {
    let mut stage = Stage::new(saving());
    stage.admit(&[0, 1]);
    stage.drift(25);
    stage.stop(MOVED);
    stage.sim.apply(muster_core::Event::GangCancelled(GANG)).expect("it runs");
    stage.drift(30);
    assert_eq!(stage.sim.unfinished(), 0);
    let spec: Option<&GangSpec> = stage.sim.world.gang(GANG).map(|gang| &gang.spec);
    assert_eq!(spec, None);
}
