//! Prints a line per event and, on a terminal, the current status of every gang below them.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::{Discriminant, discriminant};

use console::{Style, StyledObject, style};
use muster_core::gang::GangSpec;
use muster_core::id::{ClaimId, GangId, OrderId, PoolIdx};
use muster_core::order::{Claim, ClaimState, RollbackReason};
use muster_core::plan::StopReason;
use muster_core::time::{Span, Time};
use muster_core::verdict::Verdict;
use muster_core::{Fact, Plan, World};

use crate::figures;
use crate::figures::count;
use crate::timeline::gang_changes;
use crate::timeline::gang_request::gang_request;
use crate::timeline::orders::{OrderLine, Placed, meter};
use crate::timeline::status_lines::StatusLines;
use crate::words;

/// A gang that is not over.
struct GangLine {
    name: String,
    started: Option<Time>,
    /// The kind of verdict that was printed, so that it is printed once.
    announced: Option<Discriminant<Verdict>>,
    /// Whether it was asked to stop and is in its grace period.
    stopping: bool,
    /// When a resize was requested that is not complete.
    resizing: Option<Time>,
}

/// The timeline of a run.
pub(crate) struct Timeline {
    status_lines: StatusLines,
    gangs: BTreeMap<GangId, GangLine>,
    pub(crate) orders: BTreeMap<OrderId, OrderLine>,
    starting: BTreeMap<GangId, (Time, Time, u32)>,
    /// Idle nodes released in this step, by kind; printed together.
    released: BTreeMap<String, u32>,
    /// The last printed target of each pool: free nodes, stopped nodes, nodes for expected demand.
    targets: BTreeMap<PoolIdx, (u32, u32, u32)>,
    name_width: usize,
    /// When the run began, and its speed.
    from: Time,
    speed: f64,
    /// The number of gangs in the input, and the gangs submitted so far. A retried gang is submitted again.
    expected: usize,
    arrived: BTreeSet<String>,
}

impl Timeline {
    /// A timeline of gangs with names of these widths.
    pub(crate) fn new(names: impl ExactSizeIterator<Item = usize>) -> Self {
        Self {
            status_lines: StatusLines::new(),
            expected: names.len(),
            arrived: BTreeSet::new(),
            gangs: BTreeMap::new(),
            orders: BTreeMap::new(),
            starting: BTreeMap::new(),
            released: BTreeMap::new(),
            targets: BTreeMap::new(),
            name_width: names.max().unwrap_or(0).min(24),
            from: Time::ZERO,
            speed: 1.0,
        }
    }

    /// The same for a run of real processes, which begins at an instant and whose members start at wall-clock speed.
    pub(crate) fn of_processes(self, from: Time, speed: f64) -> Self {
        Self { from, speed, ..self }
    }

    /// Prints one fact.
    pub(crate) fn on_fact(&mut self, now: Time, world: &World, fact: &Fact) {
        match fact {
            Fact::GangSubmitted { gang, spec } => self.submitted(now, *gang, spec),
            Fact::GangRefused { name, why } => {
                self.arrived.insert(name.to_string());
                self.line(now, &style("refused").red(), name, why);
            }
            Fact::GangCancelled { gang } => {
                self.gang_line(now, &style("cancel").yellow(), *gang, "it was cancelled");
            }
            Fact::OrderPlaced { order, gang, claims, holds, after, .. } => {
                let placed = Placed { gang: *gang, claims, held: holds.len(), after };
                self.ordered(now, world, *order, &placed);
            }
            Fact::OrderToppedUp { order, lost, claim, offering } => {
                self.topped_up(now, world, *order, *lost, *claim, *offering);
            }
            Fact::OrderRolledBack { order, gang, reason: RollbackReason::NotNeeded } => {
                self.orders.remove(order);
                let text = "fits on nodes that have become free: its order is not needed";
                self.gang_line(now, &style("sooner").green(), *gang, text);
            }
            Fact::OrderRolledBack { order, gang, reason } => {
                let why = words::rollback(world, *reason);
                self.rolled_back(now, *order, *gang, &why);
            }
            Fact::NodeSeen { claim: Some(claim), gpus, ready: true, .. } => {
                self.node_ready(now, world, *claim, *gpus);
            }
            Fact::NodeLost { name, .. } if self.gone_unasked(world, name) => {
                let text = format!("{name} failed in service");
                self.line(now, &style("lost").red(), "", &text);
            }
            Fact::MembersStarted { gang, members, .. } => {
                let entry = self.starting.entry(*gang).or_insert((now, now, 0));
                (entry.1, entry.2) = (now, entry.2 + u32::from(*members));
            }
            Fact::GangStarted { gang } => self.started(now, world, *gang),
            Fact::GangStopping { gang, reason } => self.stopping(now, world, *gang, *reason),
            Fact::GangStopped { gang, reason } => self.stopped(now, world, *gang, *reason),
            Fact::GangResizing { gang, from, to, .. } => {
                self.resizing(now, world, *gang, *from, *to);
            }
            Fact::GangResized { gang } => self.resized(now, world, *gang),
            Fact::ResizeDeclined { gang } => self.declined(now, world, *gang),
            Fact::NodeNoticed { node, by } => {
                let text = gang_changes::noticed(world, now, *node, *by);
                self.line(now, &style("notice").yellow(), "", &text);
            }
            Fact::GangFailed { gang, why, retry } => self.failed(now, *gang, why, *retry),
            Fact::GangEnded { gang } => self.ended(now, *gang),
            Fact::ClaimReleased { claim } => self.released(world, *claim),
            _ => {}
        }
    }

    /// Prints verdicts that have changed in a step, released nodes and new targets.
    pub(crate) fn on_plan(&mut self, now: Time, world: &World, plan: &Plan) {
        for (kind, number) in std::mem::take(&mut self.released) {
            let text = format!("{number} x {kind} released after being idle");
            self.line(now, &style("release").dim(), "", &text);
        }
        for (pool, target) in &plan.targets {
            let wants = (target.free, target.stopped, target.expected);
            if self.targets.insert(*pool, wants) != Some(wants) {
                let name = world.pools()[*pool].spec.name.clone();
                self.line(now, &style("target").cyan(), &name, &words::target(target));
            }
        }
        for (gang, verdict) in &plan.verdicts {
            let Some(line) = self.gangs.get_mut(gang) else { continue };
            // Waiting is printed when it begins; the exact reason changes too often.
            let word = match verdict {
                Verdict::Waiting { .. } => style("wait").yellow(),
                Verdict::Impossible { .. } => style("never").red(),
                _ => {
                    line.announced = None;
                    continue;
                }
            };
            if line.announced.replace(discriminant(verdict)) != Some(discriminant(verdict)) {
                self.gang_line(now, &word, *gang, &words::verdict(world, *gang, verdict));
            }
        }
        self.draw(now, world, plan);
    }

    /// Draws the current status, if the output is a terminal.
    pub(crate) fn draw(&mut self, now: Time, world: &World, plan: &Plan) {
        if !self.status_lines.is_terminal() {
            return;
        }
        let up = world.nodes().filter(|(_, node)| node.usable && !node.releasing).count();
        let coming = world.claims().values().filter(|claim| is_coming(claim)).count();
        let mut nodes = count(up, "node") + " up";
        if coming > 0 {
            nodes += &format!(", {coming} coming");
        }
        if self.gangs.is_empty() && self.arrived.len() >= self.expected {
            nodes += "; every gang is done, idle nodes are released soon";
        }
        let mut lines = vec![self.head(&self.clock(now), &style("now").dim(), &nodes)];
        for (gang, verdict) in &plan.verdicts {
            let Some(line) = self.gangs.get(gang) else { continue };
            let text = match (verdict, line.started) {
                (Verdict::Provisioning { ready, total, .. }, _) => {
                    let (ready, total) = (*ready as usize, *total as usize);
                    let text = words::verdict(world, *gang, verdict);
                    format!("{} {text}", meter(ready, total)).trim_start().to_owned()
                }
                (Verdict::Running, Some(started)) => {
                    let text = words::verdict(world, *gang, verdict);
                    format!("{text} for {}", figures::span(now.since(started)))
                }
                _ => words::verdict(world, *gang, verdict),
            };
            lines.push(self.head("", &style(""), &line.name) + &text);
        }
        self.status_lines.show(&lines);
    }

    /// Prints a line of output above the status lines.
    pub(crate) fn print_output(&self, line: &str) {
        self.status_lines.print("", line);
    }

    /// Clears the status lines.
    pub(crate) fn finish(&mut self) {
        self.status_lines.clear();
    }

    fn submitted(&mut self, now: Time, gang: GangId, spec: &GangSpec) {
        let name = spec.name.to_string();
        self.arrived.insert(name.clone());
        self.gangs.insert(
            gang,
            GangLine { name, started: None, announced: None, stopping: false, resizing: None },
        );
        self.gang_line(now, &style("submit").cyan(), gang, &gang_request(spec));
    }

    fn started(&mut self, now: Time, world: &World, gang: GangId) {
        let Some((first, last, members)) = self.starting.remove(&gang) else { return };
        self.orders.retain(|_, order| order.gang != gang);
        if let Some(line) = self.gangs.get_mut(&gang) {
            line.started = Some(first);
        }
        let spread = Span((last.since(first).0 as f64 / self.speed) as u64);
        let text = gang_changes::started(world, gang, members, spread);
        self.gang_line(now, &style("START").green().bold(), gang, &text);
    }

    fn stopping(&mut self, now: Time, world: &World, gang: GangId, reason: StopReason) {
        let Some(text) = gang_changes::stopping(world, gang, reason) else { return };
        self.gang_line(now, &style(gang_changes::word(reason)).yellow(), gang, &text);
        if let Some(line) = self.gangs.get_mut(&gang) {
            line.stopping = true;
        }
    }

    fn stopped(&mut self, now: Time, world: &World, gang: GangId, reason: StopReason) {
        self.starting.remove(&gang);
        let line = self.gangs.get_mut(&gang);
        let announced = line.is_some_and(|line| {
            line.resizing = None;
            std::mem::take(&mut line.stopping)
        });
        let word = if announced { "stop" } else { gang_changes::word(reason) };
        let text = gang_changes::stopped(world, gang, reason, announced);
        self.gang_line(now, &style(word).yellow(), gang, &text);
    }

    fn resizing(&mut self, now: Time, world: &World, gang: GangId, from: u32, to: u32) {
        let (word, text) = gang_changes::resizing(world, gang, from, to);
        self.gang_line(now, &style(word).magenta(), gang, &text);
        if let Some(line) = self.gangs.get_mut(&gang) {
            line.resizing = Some(now);
        }
    }

    fn resized(&mut self, now: Time, world: &World, gang: GangId) {
        self.starting.remove(&gang);
        let requested = self.gangs.get_mut(&gang).and_then(|line| line.resizing.take());
        // A resize that completes in the same instant needs no second line.
        if requested != Some(now) {
            let text = format!("has {} now", gang_changes::members(world, gang));
            self.gang_line(now, &style("resize").magenta(), gang, &text);
        }
    }

    fn declined(&mut self, now: Time, world: &World, gang: GangId) {
        self.starting.remove(&gang);
        self.gangs.get_mut(&gang).and_then(|line| line.resizing.take());
        let text = format!("declines to grow: it has {}", gang_changes::members(world, gang));
        self.gang_line(now, &style("decline").magenta(), gang, &text);
    }

    /// A run has failed; the line that it has ended is omitted then.
    fn failed(&mut self, now: Time, gang: GangId, why: &str, retry: Option<(u32, u32)>) {
        let text = match retry {
            Some((number, of)) => format!("retry {number} of {of}: {why}"),
            None => why.to_owned(),
        };
        self.gang_line(now, &style("failed").red(), gang, &text);
        self.gangs.remove(&gang);
    }

    fn ended(&mut self, now: Time, gang: GangId) {
        if !self.gangs.contains_key(&gang) {
            return;
        }
        let started = self.gangs.get(&gang).and_then(|line| line.started);
        let text = started.map_or_else(String::new, |started| {
            format!("ran for {}", figures::span(now.since(started)))
        });
        self.gang_line(now, &style("done").green(), gang, &text);
        self.gangs.remove(&gang);
    }

    fn released(&mut self, world: &World, claim: ClaimId) {
        let Some(claim) = world.claims().get(&claim) else { return };
        // A node released before it was ready is part of the rollback's line.
        if claim.is_ready() {
            let spec = &world.offering(claim.offering).spec;
            *self
                .released
                .entry(format!("{} in {}", spec.instance_type, spec.zone))
                .or_default() += 1;
        }
    }

    /// Whether a lost node was in service and was not being released.
    fn gone_unasked(&self, world: &World, name: &str) -> bool {
        world
            .claims()
            .values()
            .filter(|claim| {
                // A node that is stopped has not failed.
                !claim.releasing
                    && !matches!(claim.state, ClaimState::Stopping | ClaimState::Stopped)
            })
            .any(|claim| *claim.node_name() == *name)
    }

    pub(crate) fn gang_line(&self, now: Time, word: &StyledObject<&str>, gang: GangId, text: &str) {
        let name = self.gangs.get(&gang).map_or("", |line| &line.name);
        self.line(now, word, name, text);
    }

    fn line(&self, now: Time, word: &StyledObject<&str>, name: &str, text: &str) {
        self.status_lines.print(&self.head(&self.clock(now), word, name), text);
    }

    fn clock(&self, now: Time) -> String {
        clock(Time(now.0 - self.from.0))
    }

    /// The columns before the text of a line.
    fn head(&self, clock: &str, word: &StyledObject<&str>, name: &str) -> String {
        let clock = Style::new().dim().apply_to(format!("{clock:>5}"));
        let pad = " ".repeat(9usize.saturating_sub(console::measure_text_width(&word.to_string())));
        format!("{clock}  {word}{pad} {name:width$}  ", width = self.name_width)
    }
}

/// Whether a requested node may still become ready.
fn is_coming(claim: &Claim) -> bool {
    let settled = matches!(claim.state, ClaimState::Ready(_) | ClaimState::Failed(_));
    !settled && !claim.releasing
}

/// Minutes and seconds of simulated time.
fn clock(now: Time) -> String {
    // Rounded as spans are, so that both agree.
    let secs = (now.since(Time::ZERO).0 + 500) / 1_000;
    match secs {
        0..3_600 => format!("{}:{:02}", secs / 60, secs % 60),
        _ => format!("{}:{:02}:{:02}", secs / 3_600, secs % 3_600 / 60, secs % 60),
    }
}
