//! A line per thing worth knowing, and under them, on a terminal, where every gang stands right now.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};

use console::{Style, style};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use muster_core::gang::{Closeness, GangSpec};
use muster_core::id::{ClaimId, GangId, OrderId};
use muster_core::money::Money;
use muster_core::order::ClaimState;
use muster_core::plan::StopReason;
use muster_core::time::{Span, Time};
use muster_core::verdict::Verdict;
use muster_core::{Fact, Plan, World};

use crate::{figures, words};

struct Line {
    name: String,
    bar: Option<ProgressBar>,
    said: String,
}

struct OrderLine {
    gang: GangId,
    claims: Vec<ClaimId>,
    ready: Vec<ClaimId>,
}

/// Tells the story.
pub(crate) struct Timeline {
    multi: MultiProgress,
    live: bool,
    gangs: BTreeMap<GangId, Line>,
    orders: BTreeMap<OrderId, OrderLine>,
    starting: BTreeMap<GangId, (Time, Time, u32)>,
    /// Idle nodes given back in this step, by kind; told together.
    released: BTreeMap<String, u32>,
    name_width: usize,
}

impl Timeline {
    pub(crate) fn new(names: impl Iterator<Item = usize>) -> Self {
        Self {
            multi: MultiProgress::new(),
            live: std::io::stderr().is_terminal() && std::io::stdout().is_terminal(),
            gangs: BTreeMap::new(),
            orders: BTreeMap::new(),
            starting: BTreeMap::new(),
            released: BTreeMap::new(),
            name_width: names.max().unwrap_or(0).min(24),
        }
    }

    /// Takes in one fact.
    pub(crate) fn tell(&mut self, now: Time, world: &World, fact: &Fact) {
        match fact {
            Fact::GangSubmitted { gang, spec } => self.submitted(now, *gang, spec),
            Fact::GangRefused { name, why } => self.line(now, &style("refused").red(), name, why),
            Fact::GangCancelled { gang } => {
                self.gang_line(now, &style("cancel").yellow(), *gang, "cancelled");
            }
            Fact::OrderPlaced { order, gang, claims, holds, .. } => {
                self.ordered(now, world, *order, *gang, claims, holds.len());
            }
            Fact::OrderRolledBack { order, gang, reason } => {
                let why = words::rollback(world, *reason);
                let taken = self.orders.remove(order);
                let (kept, all) =
                    taken.map_or((0, 0), |order| (order.ready.len(), order.claims.len()));
                let text = format!(
                    "{why}: nothing starts; {kept} ready nodes stay for others, {} are withdrawn",
                    all - kept
                );
                self.gang_line(now, &style("rollback").red().bold(), *gang, &text);
            }
            Fact::NodeSeen { claim: Some(claim), gpus, ready: true, .. } => {
                self.node_ready(now, world, *claim, *gpus);
            }
            Fact::NodeLost { name, .. } if self.gone_unasked(world, name) => {
                self.line(now, &style("lost").red(), name, "node failed in service");
            }
            Fact::MemberStarted { gang, .. } => {
                let entry = self.starting.entry(*gang).or_insert((now, now, 0));
                (entry.1, entry.2) = (now, entry.2 + 1);
            }
            Fact::GangStarted { gang } => self.started(now, *gang),
            Fact::GangStopped { gang, reason } => {
                let text = match reason {
                    StopReason::NodeLost(_) => "stopped whole, back to its place in the queue",
                    StopReason::Cancelled => "stopped whole",
                };
                self.gang_line(now, &style("stop").yellow(), *gang, text);
            }
            Fact::GangEnded { gang } => self.ended(now, *gang),
            Fact::ClaimReleased { claim } => self.released(world, *claim),
            _ => {}
        }
    }

    /// Shows where every gang stands.
    pub(crate) fn stands(&mut self, now: Time, world: &World, plan: &Plan) {
        for (kind, count) in std::mem::take(&mut self.released) {
            let text = format!("{count} idle x {kind} given back");
            self.line(now, &style("release").dim(), "", &text);
        }
        for (gang, verdict) in &plan.verdicts {
            let text = words::verdict(world, *gang, verdict);
            let Some(line) = self.gangs.get_mut(gang) else { continue };
            if let Some(bar) = &line.bar {
                if let Verdict::Provisioning { ready, total, .. } = verdict {
                    bar.set_length(u64::from(*total));
                    bar.set_position(u64::from(*ready));
                }
                bar.set_message(text.clone());
            }
            // On paper, waiting is worth a line when it begins; what exactly it waits for changes too often.
            let kind = std::mem::discriminant(verdict);
            let waits = matches!(verdict, Verdict::Waiting { .. } | Verdict::Impossible { .. });
            let key = format!("{kind:?}");
            if waits && line.said != key {
                let name = line.name.clone();
                line.said = key;
                self.line(now, &style("wait").yellow(), &name, &text);
            } else if !waits {
                line.said = String::new();
            }
        }
    }

    /// Clears what was drawn.
    pub(crate) fn finish(&mut self) {
        for line in self.gangs.values_mut() {
            if let Some(bar) = line.bar.take() {
                bar.finish_and_clear();
            }
        }
    }

    fn submitted(&mut self, now: Time, gang: GangId, spec: &GangSpec) {
        let name = spec.name.to_string();
        let bar = self.live.then(|| {
            let bar = self.multi.add(ProgressBar::new(1));
            let template =
                format!("  {{prefix:{}}} {{bar:16.green}} {{wide_msg}}", self.name_width);
            bar.set_style(
                ProgressStyle::with_template(&template)
                    .expect("a valid template")
                    .progress_chars("█▌ "),
            );
            bar.set_prefix(name.clone());
            bar
        });
        self.gangs.insert(gang, Line { name, bar, said: String::new() });
        self.gang_line(now, &style("submit").cyan(), gang, &ask(spec));
    }

    fn ordered(
        &mut self,
        now: Time,
        world: &World,
        order: OrderId,
        gang: GangId,
        claims: &[(ClaimId, muster_core::id::OfferingRef)],
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
            format!(", beside {held} seats on nodes that are here")
        } else {
            String::new()
        };
        let text = format!("one order for {}{have}; {hourly} per hour", parts.join(" + "));
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
        let meter: String = (0..total).map(|i| if i < ready { '■' } else { '□' }).collect();
        let text = format!("{meter} {ready}/{total} nodes ready with every GPU");
        self.gang_line(now, &style("ready").green(), gang, &text);
    }

    fn started(&mut self, now: Time, gang: GangId) {
        let Some((first, last, members)) = self.starting.remove(&gang) else { return };
        self.orders.retain(|_, order| order.gang != gang);
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
        self.gang_line(now, &style("done").green(), gang, "done");
        if let Some(line) = self.gangs.remove(&gang)
            && let Some(bar) = line.bar
        {
            bar.finish_and_clear();
            self.multi.remove(&bar);
        }
    }

    fn released(&mut self, world: &World, claim: ClaimId) {
        let Some(claim) = world.claims().get(&claim) else { return };
        // What was withdrawn before it was ready is part of the rollback's line.
        if matches!(claim.state, ClaimState::Ready(_)) {
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
            .any(|claim| !claim.releasing && format!("node-{}", claim.name) == name)
    }

    fn gang_line(&self, now: Time, word: &console::StyledObject<&str>, gang: GangId, text: &str) {
        let name = self.gangs.get(&gang).map_or("", |line| &line.name).to_owned();
        self.line(now, word, &name, text);
    }

    fn line(&self, now: Time, word: &console::StyledObject<&str>, name: &str, text: &str) {
        let clock = Style::new().dim().apply_to(clock(now));
        let pad = " ".repeat(9usize.saturating_sub(console::measure_text_width(&word.to_string())));
        let line = format!("{clock}  {word}{pad} {name:width$}  {text}", width = self.name_width);
        if self.live {
            let _ = self.multi.println(line);
        } else {
            let mut out = std::io::stdout().lock();
            let _ = writeln!(out, "{line}");
            let _ = out.flush();
        }
    }
}

/// Minutes and seconds of simulated time.
fn clock(now: Time) -> String {
    let secs = now.since(Time::ZERO).0 / 1_000;
    match secs {
        0..3_600 => format!("{:>5}", format!("{}:{:02}", secs / 60, secs % 60)),
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
    let lasts = lasts.map_or(String::new(), |span| format!(", about {}", figures::span(span)));
    format!("{}{close}{lasts}", roles.join(" + "))
}
