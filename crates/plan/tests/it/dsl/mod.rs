//! Cases as text: one line is one thing written, seen, done or decided; what comes out is every plan in words.
//!
//! ```text
//! node   a[1..4] gpus=8 zone=a rack=r1 taint=t=v:NoSchedule label:disk=ssd ready=no
//! pool   p tier=spot idle=10m nodes=8 gpus=64 budget=100 : zone=a price=10 max=4 ; type=big gpus=16 price=19
//! queue  team parent=default gpu=16 cpu=100 tiers=spot,reserved weight=3 sure=8 each=4 half=1h
//! gang   train 1x50cpu+4x8gpu topology=required:rack prio=10 queue=team r1.if:disk=ssd tolerate:t
//! gang   wide 4x1gpu spread=node,zone/words   # members should be spread, with those of the same spread group
//! gang   short 1x8gpu for=30m user=ann deadline=2h cost=40
//! pool   w warm=2 stopped=1 buffer=10% schedule=0_8_*_*_*/UTC/10h/4 forecast=8 expire=24h : start=60s capacity=reserved
//! epoch  2026-03-28T00:00:00Z   # what time it is at the beginning
//! expect p 2,4,4           # what a forecaster says: free nodes wanted, hour by hour
//! policy fifo-overtake trials=5 failover=listed top-ups=0 searches=1 urgency=1 overhead=50 settle=5m
//! why train                # what would let it start now, and when it is expected to
//! plan                     # decide, say it, and do it; a case without this line plans once, at the end
//! plan wake                # the same, and say when it is due again; `plan targets`: what pools should have;
//!                          # `plan ways`: the ways that were compared
//! ready c0 gpus=4          # the node of a claim appears, here with fewer GPUs than promised; `efa=0`: without adapters
//! parked c0                # its machine is stopped
//! fail c1 stock-out | launched c0 | forgotten c0 | lost a1 | stopped train | end train | cancel train | +15m
//! gang   big 4..8x8gpu preemptible grace=2m minrun=30m save=told save=10m restart=1m efficiency=900 resize=30s
//! gang   low 1x8gpu prio=100 never-preempts   # no gang is stopped for its priority
//! queue  team slice=1h reclaim=10m evictions=4 closed=yes
//! queue  team ns=a,b maxprio=10 maxcost=5 maxgrace=1m maxminrun=1h maxtimeout=1h firm=never|guarantee|always
//! gang   boast 1x8gpu prio=9 declared   # its priority is declared by itself
//! unqueue team             # it is not declared any more
//! notice a1 2m | notice a1 off | resized big | declined big | measured big 800 | started low[1..9]
//! run 3h every 10m         # plan so often with a willing host; print actions, not verdicts
//! change train 6x8gpu      # its submitter changes it
//! spare big a[3..4]        # members of its first role on these nodes are gone or going | back big a4: it gives the seat back
//! look big                 # its members, what it has done and has left, and how often it was stopped
//! ```
//!
//! Whatever a case is about, each of its plans must be a pure function of the World, give every gang one verdict
//! and be accepted by the World as a whole.

mod gangs;
mod show;
mod specs;

use muster_core::event::{Refusal, RoleSeats};
use muster_core::gang::{Gang, Phase};
use muster_core::id::{ClaimId, GangId};
use muster_core::order::ClaimFailure;
use muster_core::proactive::PoolForecast;
use muster_core::time::{Span, Time};
use muster_core::topology::Levels;
use muster_core::{Event, Plan, World};
use muster_plan::policy::Failover;
use muster_plan::{Policy, QueueOrder, plan};

/// Runs a case and returns what was planned.
pub(crate) fn check(case: &str) -> String {
    let mut bench = Bench::new();
    let plans = |line: &str| line.split_whitespace().next() == Some("plan");
    case.lines().for_each(|line| bench.line(line));
    if !case.lines().any(plans) {
        bench.plan("");
    }
    bench.out
}

/// A World, what happened to it, and what was planned for it.
pub(crate) struct Bench {
    pub(crate) world: World,
    pub(crate) policy: Policy,
    pub(crate) now: Time,
    /// Everything the World accepted, decisions included.
    pub(crate) events: Vec<(Time, Event)>,
    pub(crate) out: String,
}

impl Bench {
    /// An empty World whose host has reported everything.
    pub(crate) fn new() -> Self {
        let mut bench = Self {
            world: World::with_baseline(Levels::default()),
            policy: Policy { order: QueueOrder::Fifo, ..Policy::default() },
            now: Time::ZERO,
            events: Vec::new(),
            out: String::new(),
        };
        bench.tell(Event::Synced).expect("nothing against that");
        bench
    }

    /// Tells the World, and remembers what it accepted.
    pub(crate) fn tell(&mut self, event: Event) -> Result<(), Refusal> {
        self.world.apply(self.now, &event)?;
        self.events.push((self.now, event));
        Ok(())
    }

    /// Does what one line says.
    pub(crate) fn line(&mut self, line: &str) {
        let line = line.split('#').next().unwrap_or_default().trim();
        let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match verb {
            "" => {}
            "plan" => self.plan(rest.trim()),
            "policy" => self.set_policy(rest),
            "run" => self.run(rest),
            "look" => {
                let said = show::look(&self.world, self.now, self.gang(rest.trim()));
                self.say(&said);
            }
            "why" => self.why(rest.trim()),
            "unsynced" => self.world = World::new(Levels::default()),
            _ if verb.starts_with('+') => {
                self.now += verb[1..].parse::<Span>().expect("a time such as +15m");
                self.tell(Event::Tick).expect("time passes");
            }
            _ => {
                for event in self.events_of(verb, rest) {
                    if let Err(refusal) = self.tell(event) {
                        self.say(&format!("{line}: refused, {refusal}"));
                    }
                }
            }
        }
    }

    /// Decides, says it, checks what holds for every plan, and does it.
    pub(crate) fn plan(&mut self, how: &str) {
        let plan = plan(&self.world, self.now, &self.policy);
        if self.now > Time::ZERO {
            self.say(&format!("-- {}", show::time(self.now)));
        }
        let said = show::plan(&self.world, &plan);
        self.say(&said);
        if let (Some(wake), "wake") = (plan.wake, how) {
            self.say(&format!("wake at {}", show::time(wake)));
        }
        if how == "ways" {
            show::ways(&self.world, &plan).iter().for_each(|line| self.say(line));
        }
        if how == "targets" {
            plan.targets.iter().for_each(|target| self.say(&show::target(&self.world, target)));
        }
        self.check_plan(&plan);
        for action in plan.actions() {
            if let Err(refusal) = self.tell(Event::Decided(action.clone())) {
                self.say(&format!("REFUSED: {refusal}"));
            }
        }
    }

    /// Plans again and again with a host that does everything at once; gangs end when their estimates say.
    fn run(&mut self, rest: &str) {
        let (long, every) = rest.split_once(" every ").unwrap_or((rest, "10m"));
        let span = |text: &str| text.trim().parse::<Span>().expect("a time");
        let (until, every) = (self.now + span(long), span(every));
        while self.now < until {
            self.now += every;
            self.tell(Event::Tick).expect("time passes");
            let ends = |world: &World, now| {
                let over = world
                    .gangs()
                    .filter(|(_, gang)| gang.estimated_end().is_some_and(|at| at <= now));
                over.map(|(id, gang)| (id, gang.spec.name.clone())).collect::<Vec<_>>()
            };
            let mut said: Vec<String> = Vec::new();
            for (id, name) in ends(&self.world, self.now) {
                said.push(format!("{name} ends"));
                self.tell(Event::GangEnded(id)).expect("it runs");
            }
            let mut rounds = 0;
            loop {
                let plan = plan(&self.world, self.now, &self.policy);
                self.check_plan(&plan);
                said.extend(show::actions(&self.world, &plan));
                for action in plan.actions() {
                    let told = self.tell(Event::Decided(action.clone()));
                    said.extend(told.err().map(|refusal| format!("REFUSED: {refusal}")));
                }
                self.obey();
                rounds += 1;
                if plan.groups.is_empty() || rounds > 20 {
                    break;
                }
            }
            assert!(rounds <= 20, "it never settles:\n{}", said.join("\n"));
            if !said.is_empty() {
                self.say(&format!("-- {}\n{}", show::time(self.now), said.join("\n")));
            }
        }
    }

    /// Does for every gang what it was told.
    fn obey(&mut self) {
        let told = |(id, gang): (GangId, &Gang)| match gang.phase {
            Phase::Admitted { .. } => Some(Event::GangStarted(id)),
            Phase::Stopping => Some(Event::GangStopped(id)),
            _ => gang.resize.as_ref().map(|_| Event::GangResized(id)),
        };
        let events: Vec<Event> = self.world.gangs().filter_map(told).collect();
        for event in events {
            self.tell(event).expect("it was told to");
        }
    }

    /// Says what would let a gang start now.
    fn why(&mut self, name: &str) {
        let why = muster_plan::why(&self.world, self.now, &self.policy, self.gang(name));
        let said = show::why(&self.world, name, &why.expect("the gang is there"));
        self.say(&said);
    }

    /// What holds for every plan of every World.
    pub(crate) fn check_plan(&self, decided: &Plan) {
        assert_eq!(*decided, plan(&self.world, self.now, &self.policy), "same World, same plan");
        if self.world.is_synced() {
            let judged: Vec<GangId> = decided.verdicts.iter().map(|(gang, _)| *gang).collect();
            let there: Vec<GangId> = self.world.gangs().map(|(gang, _)| gang).collect();
            assert_eq!(judged, there, "every gang gets one verdict");
        }
    }

    fn events_of(&self, verb: &str, rest: &str) -> Vec<Event> {
        let (name, options) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
        let one = |event| vec![event];
        match verb {
            "node" => specs::nodes(rest).into_iter().map(Event::NodeSeen).collect(),
            "pool" => one(Event::PoolSet(specs::pool(rest))),
            "queue" => one(Event::QueueSet(specs::queue(rest))),
            "unqueue" => one(Event::QueueGone(name.into())),
            "gang" => gangs::gangs(rest).into_iter().map(Event::GangSubmitted).collect(),
            "change" => gangs::gangs(rest).into_iter().map(Event::GangChanged).collect(),
            "spare" | "back" => {
                let node = |name: &String| self.world.node_named(name).expect("a node");
                let nodes = specs::expand(options.trim());
                let one = |name| RoleSeats { role: 0, node: node(name), members: 1 };
                let (gang, seats) = (self.gang(name), nodes.iter().map(one).collect());
                match verb {
                    "spare" => vec![Event::SeatsSpare { gang, seats }],
                    _ => vec![Event::SeatsGivenBack { gang, seats }],
                }
            }
            "ready" => specs::expand(name)
                .iter()
                .map(|name| Event::NodeSeen(specs::node_of(&self.world, claim(name), options)))
                .collect(),
            "parked" => one(Event::ClaimStopped(claim(name))),
            "expect" => one(Event::Expected {
                pool: name.into(),
                outlook: PoolForecast {
                    from: self.now,
                    step: Span::hours(1),
                    nodes: options.split(',').map(|n| n.parse().expect("a number")).collect(),
                },
            }),
            "epoch" => one(Event::Epoch(specs::unix_ms(name))),
            "launched" => one(Event::ClaimLaunched(claim(name))),
            "forgotten" => one(Event::ClaimGone(claim(name))),
            "fail" => one(Event::ClaimFailed(claim(name), failure(options))),
            "lost" => one(Event::NodeGone(name.into())),
            "notice" if options.trim() == "off" => {
                one(Event::NodeNotice { name: name.into(), by: Time::MAX })
            }
            "notice" => {
                let by = self.now + options.trim().parse::<Span>().expect("a time such as 2m");
                one(Event::NodeNotice { name: name.into(), by })
            }
            "resized" => self.each(name, Event::GangResized),
            "declined" => self.each(name, Event::ResizeDeclined),
            "measured" => {
                let efficiency = options.trim().parse().expect("thousandths");
                one(Event::GangMeasured(self.gang(name), efficiency))
            }
            "started" => self.each(name, Event::GangStarted),
            "stopped" => self.each(name, Event::GangStopped),
            "end" => self.each(name, Event::GangEnded),
            "cancel" => self.each(name, Event::GangCancelled),
            _ => panic!("no such line: {verb} {rest}"),
        }
    }

    fn each(&self, names: &str, event: impl Fn(GangId) -> Event) -> Vec<Event> {
        specs::expand(names).iter().map(|name| event(self.gang(name))).collect()
    }

    fn gang(&self, name: &str) -> GangId {
        self.world.gang_named(name).unwrap_or_else(|| panic!("no gang {name}"))
    }

    fn set_policy(&mut self, rest: &str) {
        for word in rest.split_whitespace() {
            match word.split_once('=') {
                None => self.policy.order = word.parse().expect("a policy"),
                Some(("failover", how)) => {
                    self.policy.failover =
                        if how == "listed" { Failover::AsListed } else { Failover::ByCost };
                }
                Some(("top-ups", most)) => self.policy.top_ups = most.parse().expect("a number"),
                Some(("searches", most)) => self.policy.searches = most.parse().expect("a number"),
                Some(("urgency", times)) => self.policy.urgency = times.parse().expect("a number"),
                Some(("overhead", part)) => {
                    self.policy.rotation_overhead = part.parse().expect("thousandths");
                }
                Some(("settle", span)) => self.policy.settle_in = span.parse().expect("a time"),
                Some(("trials", trials)) => self.policy.trials = trials.parse().expect("a number"),
                Some(_) => panic!("no such policy: {word}"),
            }
        }
    }

    fn say(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }
}

/// The claim of this name.
fn claim(name: &str) -> ClaimId {
    ClaimId(name[1..].parse().expect("a claim such as c0"))
}

fn failure(name: &str) -> ClaimFailure {
    match name {
        "stock-out" => ClaimFailure::StockOut,
        "boot-failed" => ClaimFailure::BootFailed,
        "gpus-missing" => ClaimFailure::GpusMissing,
        "too-small" => ClaimFailure::TooSmall,
        "vanished" => ClaimFailure::Vanished,
        "throttled" => ClaimFailure::Throttled,
        _ => panic!("no such failure: {name}"),
    }
}
