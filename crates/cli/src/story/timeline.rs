//! A line per thing worth knowing, and under them, on a terminal, where every gang stands right now.

use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};

use console::{Style, StyledObject, style};
use muster_core::gang::{Closeness, GangSpec};
use muster_core::id::{ClaimId, GangId, OfferingRef, OrderId, PoolIdx};
use muster_core::money::Money;
use muster_core::order::{Claim, ClaimState, RollbackReason};
use muster_core::plan::StopReason;
use muster_core::time::{Span, Time};
use muster_core::verdict::Verdict;
use muster_core::{Fact, Plan, World};

use super::board::Board;
use crate::figures::{self, count};
use crate::words;

/// A gang that is not over.
struct Line {
    name: String,
    started: Option<Time>,
    /// The kind of waiting that was told, so that it is told once.
    told: Option<Discriminant<Verdict>>,
}

struct OrderLine {
    gang: GangId,
    claims: Vec<ClaimId>,
    ready: Vec<ClaimId>,
}

/// Tells the story.
pub(crate) struct Timeline {
    board: Board,
    gangs: BTreeMap<GangId, Line>,
    orders: BTreeMap<OrderId, OrderLine>,
    starting: BTreeMap<GangId, (Time, Time, u32)>,
    /// Idle nodes given back in this step, by kind; told together.
    released: BTreeMap<String, u32>,
    /// What each pool was last said to want free, stopped, and for what is expected.
    targets: BTreeMap<PoolIdx, (u32, u32, u32)>,
    name_width: usize,
    /// Gangs that are not over, those to come among them.
    left: usize,
}

impl Timeline {
    /// A timeline of gangs with names of these widths.
    pub(crate) fn new(names: impl ExactSizeIterator<Item = usize>) -> Self {
        Self {
            board: Board::new(),
            left: names.len(),
            gangs: BTreeMap::new(),
            orders: BTreeMap::new(),
            starting: BTreeMap::new(),
            released: BTreeMap::new(),
            targets: BTreeMap::new(),
            name_width: names.max().unwrap_or(0).min(24),
        }
    }

    /// Takes in one fact.
    pub(crate) fn tell(&mut self, now: Time, world: &World, fact: &Fact) {
        match fact {
            Fact::GangSubmitted { gang, spec } => self.submitted(now, *gang, spec),
            Fact::GangRefused { name, why } => {
                self.left -= 1;
                self.line(now, &style("refused").red(), name, why);
            }
            Fact::GangCancelled { gang } => {
                self.gang_line(now, &style("cancel").yellow(), *gang, "nobody wants it any more");
            }
            Fact::OrderPlaced { order, gang, claims, holds, .. } => {
                self.ordered(now, world, *order, *gang, claims, holds.len());
            }
            Fact::OrderToppedUp { order, lost, claim, offering } => {
                self.topped_up(now, world, *order, *lost, *claim, *offering);
            }
            Fact::OrderRolledBack { order, gang, reason: RollbackReason::NotNeeded } => {
                self.orders.remove(order);
                let text = "fits on nodes that have become free: it does not wait for its own";
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
            Fact::GangStarted { gang } => self.started(now, *gang),
            Fact::GangStopped { gang, reason } => {
                let text = match reason {
                    StopReason::NodeLost(_) => "stopped whole, back to its place in the queue",
                    StopReason::Cancelled => "stopped whole",
                    StopReason::Moved => "stopped whole, to move to other nodes",
                    StopReason::NodeFailing(_) => "stopped whole before its node goes",
                    StopReason::Preempted(_) => "stopped whole for a gang of higher priority",
                    StopReason::Reclaimed(_) => "stopped whole: what it ran on was lent",
                    StopReason::Rotated(_) => "stopped whole: it is another's turn",
                };
                self.gang_line(now, &style("stop").yellow(), *gang, text);
            }
            Fact::GangEnded { gang } => self.ended(now, *gang),
            Fact::ClaimReleased { claim } => self.released(world, *claim),
            _ => {}
        }
    }

    /// Tells who waits, once a step is taken, and what was given back in it.
    pub(crate) fn stands(&mut self, now: Time, world: &World, plan: &Plan) {
        for (kind, number) in std::mem::take(&mut self.released) {
            let text = format!("{number} x {kind} given back after being idle");
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
            // Waiting is worth a line when it begins; what exactly it waits for changes too often.
            let word = match verdict {
                Verdict::Waiting { .. } => style("wait").yellow(),
                Verdict::Impossible { .. } => style("never").red(),
                _ => {
                    line.told = None;
                    continue;
                }
            };
            if line.told.replace(discriminant(verdict)) != Some(discriminant(verdict)) {
                self.gang_line(now, &word, *gang, &words::verdict(world, *gang, verdict));
            }
        }
        self.draw(now, world, plan);
    }

    /// Shows where everything stands at this moment, if somebody watches.
    pub(crate) fn draw(&mut self, now: Time, world: &World, plan: &Plan) {
        if !self.board.is_watched() {
            return;
        }
        let up = world.nodes().filter(|(_, node)| node.usable && !node.releasing).count();
        let coming = world.claims().values().filter(|claim| is_coming(claim)).count();
        let mut nodes = count(up, "node") + " up";
        if coming > 0 {
            nodes += &format!(", {coming} coming");
        }
        if self.left == 0 {
            nodes += "; every gang is done, idle nodes are given back soon";
        }
        let mut lines = vec![self.head(&clock(now), &style("now").dim(), &nodes)];
        for (gang, verdict) in &plan.verdicts {
            let Some(line) = self.gangs.get(gang) else { continue };
            let text = match (verdict, line.started) {
                (Verdict::Provisioning { ready, total, .. }, _) => {
                    let (ready, total) = (*ready as usize, *total as usize);
                    format!("{} {}", meter(ready, total), words::verdict(world, *gang, verdict))
                }
                (Verdict::Running, Some(started)) => {
                    format!("running for {}", figures::span(now.since(started)))
                }
                _ => words::verdict(world, *gang, verdict),
            };
            lines.push(self.head("", &style(""), &line.name) + &text);
        }
        self.board.show(&lines);
    }

    /// Clears what was drawn.
    pub(crate) fn finish(&mut self) {
        self.board.clear();
    }

    fn submitted(&mut self, now: Time, gang: GangId, spec: &GangSpec) {
        let name = spec.name.to_string();
        self.gangs.insert(gang, Line { name, started: None, told: None });
        self.gang_line(now, &style("submit").cyan(), gang, &ask(spec));
    }

    fn rolled_back(&mut self, now: Time, order: OrderId, gang: GangId, why: &str) {
        let text = format!("{why}: the whole order is taken back, nothing starts");
        self.gang_line(now, &style("rollback").red().bold(), gang, &text);
        let Some(order) = self.orders.remove(&order) else { return };
        let (kept, dropped) = (order.ready.len(), order.claims.len() - order.ready.len());
        let text = match (kept, dropped) {
            (0, dropped) => format!("{} given up", count(dropped, "node")),
            (kept, 0) => format!("{} kept for others", count(kept, "ready node")),
            (kept, dropped) => {
                format!("{} kept for others, {dropped} given up", count(kept, "ready node"))
            }
        };
        self.gang_line(now, &style("").dim(), gang, &text);
    }

    fn topped_up(
        &mut self,
        now: Time,
        world: &World,
        order: OrderId,
        lost: ClaimId,
        claim: ClaimId,
        offering: OfferingRef,
    ) {
        let Some(entry) = self.orders.get_mut(&order) else { return };
        entry.claims.iter_mut().filter(|id| **id == lost).for_each(|id| *id = claim);
        let failed = world.claims().get(&lost).is_none_or(|claim| claim.stage().is_none());
        if !failed {
            return; // only a node that comes sooner
        }
        let (gang, ready, total) = (entry.gang, entry.ready.len(), entry.claims.len());
        let spec = &world.offering(offering).spec;
        let text = format!(
            "{ready}/{total} ready and one failed: another {} in {} is cheaper than starting over",
            spec.instance_type, spec.zone
        );
        self.gang_line(now, &style("top-up").yellow(), gang, &text);
    }

    fn ordered(
        &mut self,
        now: Time,
        world: &World,
        order: OrderId,
        gang: GangId,
        claims: &[(ClaimId, OfferingRef)],
        held: usize,
    ) {
        let mut kinds: BTreeMap<_, u32> = BTreeMap::new();
        for (_, offering) in claims {
            *kinds.entry(*offering).or_default() += 1;
        }
        let mut hourly = Money::ZERO;
        let mut parts = Vec::new();
        for (offering, count) in kinds {
            let spec = &world.offering(offering).spec;
            hourly += spec.price.times(count);
            parts.push(format!("{count} x {} in {}", spec.instance_type, spec.zone));
        }
        let have = if held > 0 {
            format!(" beside {} on nodes that are here", count(held, "seat"))
        } else {
            String::new()
        };
        let text = format!("one order for {}{have}, {hourly} an hour", parts.join(" + "));
        self.gang_line(now, &style("order").blue(), gang, &text);
        let claims = claims.iter().map(|(claim, _)| *claim).collect();
        self.orders.insert(order, OrderLine { gang, claims, ready: Vec::new() });
    }

    fn node_ready(&mut self, now: Time, world: &World, claim: ClaimId, gpus: u16) {
        let wanted =
            world.claims().get(&claim).map_or(0, |claim| world.offering(claim.offering).spec.gpus);
        let Some(order) = self.orders.values_mut().find(|order| order.claims.contains(&claim))
        else {
            return;
        };
        if gpus < wanted || order.ready.contains(&claim) {
            return;
        }
        order.ready.push(claim);
        let (gang, ready, total) = (order.gang, order.ready.len(), order.claims.len());
        let text = format!("{} {ready}/{total} nodes ready with every GPU", meter(ready, total));
        self.gang_line(now, &style("ready").green(), gang, &text);
    }

    fn started(&mut self, now: Time, gang: GangId) {
        let Some((first, last, members)) = self.starting.remove(&gang) else { return };
        self.orders.retain(|_, order| order.gang != gang);
        if let Some(line) = self.gangs.get_mut(&gang) {
            line.started = Some(first);
        }
        let text = match members {
            1 => "started".to_owned(),
            _ => format!(
                "all {members} members started together (spread {} ms)",
                last.since(first).0
            ),
        };
        self.gang_line(now, &style("START").green().bold(), gang, &text);
    }

    fn ended(&mut self, now: Time, gang: GangId) {
        let started = self.gangs.get(&gang).and_then(|line| line.started);
        let text = started.map_or_else(String::new, |started| {
            format!("ran for {}", figures::span(now.since(started)))
        });
        self.gang_line(now, &style("done").green(), gang, &text);
        self.gangs.remove(&gang);
        self.left -= 1;
    }

    fn released(&mut self, world: &World, claim: ClaimId) {
        let Some(claim) = world.claims().get(&claim) else { return };
        // What was withdrawn before it was ready is part of the rollback's line.
        if claim.is_ready() {
            let spec = &world.offering(claim.offering).spec;
            *self
                .released
                .entry(format!("{} in {}", spec.instance_type, spec.zone))
                .or_default() += 1;
        }
    }

    /// Whether a node that is gone was in service and not being given back.
    fn gone_unasked(&self, world: &World, name: &str) -> bool {
        world
            .claims()
            .values()
            .filter(|claim| {
                // A node that is stopped has not failed.
                !claim.releasing
                    && !matches!(claim.state, ClaimState::Stopping | ClaimState::Stopped)
            })
            .any(|claim| format!("node-{}", claim.name) == name)
    }

    fn gang_line(&self, now: Time, word: &StyledObject<&str>, gang: GangId, text: &str) {
        let name = self.gangs.get(&gang).map_or("", |line| &line.name);
        self.line(now, word, name, text);
    }

    fn line(&self, now: Time, word: &StyledObject<&str>, name: &str, text: &str) {
        self.board.print(&self.head(&clock(now), word, name), text);
    }

    /// What comes before the text of a line.
    fn head(&self, clock: &str, word: &StyledObject<&str>, name: &str) -> String {
        let clock = Style::new().dim().apply_to(format!("{clock:>5}"));
        let pad = " ".repeat(9usize.saturating_sub(console::measure_text_width(&word.to_string())));
        format!("{clock}  {word}{pad} {name:width$}  ", width = self.name_width)
    }
}

/// Whether a node that was asked for may still come.
fn is_coming(claim: &Claim) -> bool {
    let settled = matches!(claim.state, ClaimState::Ready(_) | ClaimState::Failed(_));
    !settled && !claim.releasing
}

/// The longest meter, in nodes; beyond it each mark stands for more than one.
const METER: usize = 16;

/// `■■■□□□□□`: how many nodes of an order are ready.
fn meter(ready: usize, total: usize) -> String {
    let marks = total.min(METER);
    let full = ready * marks / total.max(1);
    (0..marks).map(|i| if i < full { '■' } else { '□' }).collect()
}

/// Minutes and seconds of simulated time.
fn clock(now: Time) -> String {
    // Rounded as spans are, so that the two agree.
    let secs = (now.since(Time::ZERO).0 + 500) / 1_000;
    match secs {
        0..3_600 => format!("{}:{:02}", secs / 60, secs % 60),
        _ => format!("{}:{:02}:{:02}", secs / 3_600, secs % 3_600 / 60, secs % 60),
    }
}

/// What a gang asks for, in a few words.
fn ask(spec: &GangSpec) -> String {
    let roles: Vec<String> = spec
        .roles
        .iter()
        .map(|role| {
            let gpus = role.request.gpu_milli();
            let each = match gpus {
                0 => "no GPU".to_owned(),
                1_000 => "1 GPU each".to_owned(),
                _ if gpus % 1_000 == 0 => format!("{} GPUs each", gpus / 1_000),
                _ => format!("{} GPU each", gpus as f64 / 1_000.0),
            };
            let count = if role.max > role.min {
                format!("{}..{}", role.min, role.max)
            } else {
                role.min.to_string()
            };
            format!("{count} x {} ({each})", role.name)
        })
        .collect();
    let close = match &spec.closeness {
        Some(Closeness::Required(level)) => format!(", all within one {level}"),
        Some(Closeness::Preferred(level)) => format!(", within one {level} if possible"),
        None => String::new(),
    };
    let lasts = spec.expected_duration.filter(|span| *span > Span::ZERO);
    let lasts = lasts.map_or(String::new(), |span| format!(", about {span}"));
    format!("{}{close}{lasts}", roles.join(" + "))
}
