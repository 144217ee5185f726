//! Random cases, written in the same words as those by hand.

use muster_core::gang::Phase;
use muster_core::node::Node;
use muster_core::order::ClaimState;
use muster_core::{Event, Plan};
use muster_plan::plan;

use super::seeds::Rng;
use crate::dsl::Bench;

/// Where nodes stand.
const PLACES: [&str; 5] = ["zone=a rack=r1", "zone=a rack=r2", "zone=b rack=r1", "zone=b", ""];

/// A World to which random things happen, and every line of it.
pub(crate) struct Story {
    pub(crate) bench: Bench,
    lines: Vec<String>,
    names: usize,
    /// Nothing can be bought, and nearly all gangs may be preempted.
    crowded: bool,
}

impl Drop for Story {
    /// A case that fails is printed.
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.lines.join("\n"));
        }
    }
}

impl Story {
    /// A few nodes, queues and pools, and no gangs yet.
    pub(crate) fn begin(rng: &mut Rng) -> Self {
        let crowded = rng.percent(40);
        let mut story = Self { bench: Bench::new(), lines: Vec::new(), names: 0, crowded };
        let org = ["", "", "sure=16", "sure=8 reclaim=1m", "slice=30s", "slice=1m"];
        let org = rng.pick(if crowded { &org[3..] } else { &org });
        story.line(format!("queue org gpu=60 {org}"));
        let team = ["", "", "evictions=1", "sure=4", "slice=30s", "slice=1m"];
        let slice = rng.pick(if crowded { &team[2..] } else { &team });
        story.line(format!("queue team parent=org gpu=32 cpu=60 {slice}"));
        if !crowded && rng.percent(80) {
            story.pools(rng);
        }
        if rng.percent(60) {
            let policies = [
                "fifo-overtake",
                "easy",
                "easy-sjbf",
                "easy-plus-plus",
                "sjf",
                "wfp",
                "fair",
                "muster",
            ];
            story.line(format!("policy {}", rng.pick(&policies)));
        }
        for _ in 0..rng.below(7).max(if crowded { 4 } else { 0 }) {
            story.node(rng);
        }
        story
    }

    /// Two pools, written or rewritten, which may keep nodes ahead of need.
    fn pools(&mut self, rng: &mut Rng) {
        let limit = rng.pick(&["nodes=8", "gpus=60", "budget=75", "idle=2m"]);
        let ahead = rng.pick(&[
            "",
            "warm=1",
            "stopped=1",
            "stopped=2",
            "warm=1 stopped=1",
            "buffer=20%",
            "buffer=1",
            "schedule=0,30_*_*_*_*/Europe/Berlin/10m/2",
            "forecast=2",
            "forecast=only",
        ]);
        let age = rng.pick(&["", "", "expire=10m", "expire=30m"]);
        let care = rng.pick(&["", "", "consolidate=underused", "consolidate=never", "patience=5m"]);
        self.line(format!(
            "pool p {limit} {ahead} {age} {care} : zone=a rack=r1 price=9 start=1m ; zone=b price=8 max=3 ; \
             zone=a type=s gpus=4 price=5"
        ));
        let ahead = rng.pick(&["", "", "", "warm=1"]);
        self.line(format!("pool q tier=spot nodes=4 {ahead} : zone=b type=m gpus=0 price=1"));
    }

    /// Does one line.
    pub(crate) fn line(&mut self, line: String) {
        self.lines.push(line);
        self.bench.line(self.lines.last().expect("just written"));
    }

    /// Decides as a line `plan` would, and leaves doing it to the caller.
    pub(crate) fn decide(&mut self) -> Plan {
        self.lines.push("plan".to_owned());
        let decided = plan(&self.bench.world, self.bench.now, &self.bench.policy);
        self.bench.check_plan(&decided);
        decided
    }

    /// Applies a plan: a plan just made is accepted whole.
    pub(crate) fn act(&mut self, decided: &Plan) {
        for action in decided.actions() {
            let told = self.bench.tell(Event::Decided(action.clone()));
            assert_eq!(told, Ok(()), "refused the moment it was decided: {action:?}");
        }
    }

    /// One more thing happens; plans are left to the caller.
    pub(crate) fn step(&mut self, rng: &mut Rng) {
        // Where there are no claims gangs come, start and go instead.
        let step = match rng.below(100) {
            48..72 if self.crowded => 90,
            72..78 if self.crowded => 10,
            78..86 if self.crowded => 30,
            step => step,
        };
        match step {
            0..5 => self.node(rng),
            5..27 => self.gang(rng),
            27..39 => {
                let time = rng.pick(&["10s", "30s", "1m", "1m", "3m", "15m", "30m"]);
                self.line(format!("+{time}"));
            }
            39..40 => self.lose(rng),
            40..42 => self.notice(rng),
            42..43 => self.measure(rng),
            43..44 => self.turn(rng),
            44..48 => self.flicker(rng),
            48..86 => self.claim(rng),
            _ => self.end(rng),
        }
    }

    /// A node will be gone, or stays after all.
    fn notice(&mut self, rng: &mut Rng) {
        let nodes: Vec<String> =
            self.bench.world.nodes().map(|(_, node)| node.name.to_string()).collect();
        if !nodes.is_empty() {
            let name = &nodes[rng.below(nodes.len())];
            let when = rng.pick(&["30s", "2m", "2m", "30m", "off"]);
            self.line(format!("notice {name} {when}"));
        }
    }

    /// The real gain of more members is measured.
    fn measure(&mut self, rng: &mut Rng) {
        let gangs: Vec<String> =
            self.bench.world.gangs().map(|(_, gang)| gang.spec.name.to_string()).collect();
        if !gangs.is_empty() {
            let name = &gangs[rng.below(gangs.len())];
            let efficiency = rng.pick(&["500", "800", "1000"]);
            self.line(format!("measured {name} {efficiency}"));
        }
    }

    fn name(&mut self, kind: &str) -> String {
        self.names += 1;
        format!("{kind}{}", self.names)
    }

    fn node(&mut self, rng: &mut Rng) {
        let name = self.name("n");
        let gpus = rng.pick(&["0", "2", "4", "4", "8"]);
        let place = rng.pick(&PLACES);
        let extra = rng.pick(&["", "", "", "label:disk=ssd", "taint=t:NoSchedule", "cpu=6"]);
        self.line(format!("node {name} gpus={gpus} {place} {extra}"));
    }

    /// A gang of any kind.
    pub(crate) fn gang(&mut self, rng: &mut Rng) {
        let name = self.name("g");
        let request = |rng: &mut Rng| {
            let least = 1 + rng.below(4);
            let count = match rng.below(5) {
                0 => format!("{least}..{}", least + 2),
                _ => least.to_string(),
            };
            let asks =
                ["8gpu", "8gpu", "4gpu", "2gpu", "1gpu", "0.5gpu", "0.3gpu", "2*0.4gpu", "3cpu"];
            format!("{count}x{}", rng.pick(&asks))
        };
        let mut roles = request(rng);
        if rng.percent(25) {
            roles = format!("{roles}+{}", request(rng));
        }
        let near = rng.pick(&[
            "",
            "",
            "topology=required:rack",
            "topology=required:zone",
            "topology=required:node",
            "topology=preferred:rack",
        ]);
        let wish = rng.pick(&[
            "",
            "",
            "",
            "if:disk=ssd",
            "if:zone=a",
            "if:zone!=a",
            "wish:9:disk",
            "wish:9:zone=b",
            "tolerate:t",
            "never",
            "prio=5",
        ]);
        // In a crowded case most can go anywhere, so that they are in each other's way.
        let (near, wish) = if self.crowded && rng.percent(60) { ("", "") } else { (near, wish) };
        let queues = ["queue=team", "queue=org", "", "queue=team", "queue=team"];
        let queue = rng.pick(if self.crowded { &queues } else { &queues[..3] });
        let makes_way = "preemptible save=told restart=1s";
        let moves =
            rng.pick(&["", "", "moves=0s", "moves=1m", "preemptible", "preemptible prio=3"]);
        let saves = rng.pick(&["", "", "save=told grace=1m", "save=5m restart=10s", "save=told"]);
        let scales = rng.pick(&["", "", "efficiency=700", "efficiency=900 resize=5s"]);
        let length = rng.pick(&["", "for=1m user=ann", "for=20m user=ann", "for=3h user=bob"]);
        let care = match self.crowded && rng.percent(70) {
            true => format!("{makes_way} {scales}"),
            false => format!("{moves} {saves} {scales}"),
        };
        self.line(format!("gang {name} {roles} {near} {wish} {queue} {length} {care}"));
    }

    /// The operator or the forecaster changes a pool, where there are pools.
    fn turn(&mut self, rng: &mut Rng) {
        if self.bench.world.pools().is_empty() {
            return;
        }
        match rng.below(3) {
            0 => self.pools(rng),
            _ => self.line(format!("expect p {}", rng.pick(&["0", "2,0,1", "1", "9,9"]))),
        }
    }

    /// A node is lost, with any members on it.
    fn lose(&mut self, rng: &mut Rng) {
        let world = &self.bench.world;
        let names: Vec<&str> = world.nodes().map(|(_, node)| &*node.name).collect();
        if !names.is_empty() {
            self.line(format!("lost {}", names[rng.below(names.len())]));
        }
    }

    /// A node of the cluster comes or goes without being lost, is labelled anew, moves, grows or shrinks, with any
    /// members on it.
    fn flicker(&mut self, rng: &mut Rng) {
        let world = &self.bench.world;
        let own = world.nodes().filter(|(_, node)| node.claim.is_none());
        let known: Vec<&Node> = own.map(|(_, node)| node).collect();
        if known.is_empty() {
            return;
        }
        let node = known[rng.below(known.len())];
        let gpus = usize::from(world.class(node.class).gpus);
        let (gpus, place) = match rng.below(10) {
            0..6 => (gpus, self.place_of(node)),
            6..9 => (gpus, rng.pick(&PLACES).to_owned()),
            _ => ([0, 2, 4, 8][rng.below(4)], self.place_of(node)),
        };
        let change = rng.pick(&["ready=no", "ready=yes", "label:disk=ssd", "cpu=3"]);
        self.line(format!("node {} gpus={gpus} {place} {change}", node.name));
    }

    /// The leaf of a node, in words.
    fn place_of(&self, node: &Node) -> String {
        let topology = self.bench.world.topology();
        let mut words = String::new();
        for level in &topology.levels().0 {
            if let Some(name) = topology.label_at(node.leaf, &level.label) {
                words.push_str(&format!(" {}={name}", level.name));
            }
        }
        words
    }

    /// A claim gets on, fails, or is gone for good.
    fn claim(&mut self, rng: &mut Rng) {
        let world = &self.bench.world;
        let claims = world.claims();
        let mut ways: Vec<String> = Vec::new();
        for (id, claim) in claims {
            match claim.state {
                _ if claim.releasing => ways.push(format!("forgotten {id:?}")),
                ClaimState::Requested | ClaimState::Launched | ClaimState::Registered(_) => {
                    ways.extend(std::iter::repeat_n(format!("ready {id:?}"), 8));
                    ways.push(format!("ready {id:?} ready=no"));
                    ways.push(format!("launched {id:?}"));
                    ways.push(format!("fail {id:?} stock-out"));
                    ways.extend(std::iter::repeat_n(format!("fail {id:?} throttled"), 2));
                    // A claim that fails while others of its order are ready makes an interesting case.
                    let others = claim.order.map_or(0, |order| world.orders()[&order].held.len());
                    let often = 1 + 4 * others.min(4);
                    ways.extend(std::iter::repeat_n(format!("fail {id:?} boot-failed"), often));
                }
                ClaimState::Ready(_) => {
                    let change = rng.pick(&["", "ready=no", "zone=c", "taint=t:NoSchedule"]);
                    ways.extend(rng.percent(20).then(|| format!("ready {id:?} {change}")));
                    ways.extend(rng.percent(5).then(|| format!("fail {id:?} boot-failed")));
                }
                ClaimState::Stopping => {
                    // The node goes before the machine is stopped, or with it.
                    let gone = claim.joined.is_none() || rng.percent(30);
                    ways.push(format!("{} {id:?}", if gone { "parked" } else { "lost" }));
                }
                ClaimState::Stopped => {
                    ways.extend(rng.percent(10).then(|| format!("forgotten {id:?}")));
                }
                ClaimState::Failed(failure) => {
                    // Time passes for what was put off, and what failed may still show up.
                    ways.push("+5s".to_owned());
                    ways.extend((!failure.is_transient()).then(|| format!("ready {id:?}")));
                }
            }
        }
        if ways.is_empty() {
            return;
        }
        let line = ways.swap_remove(rng.below(ways.len()));
        // The provider takes the node back before it forgets the claim.
        let node =
            line.strip_prefix("forgotten ").filter(|c| self.bench.world.node_named(c).is_some());
        if let Some(node) = node.map(str::to_owned) {
            self.line(format!("lost {node}"));
        }
        self.line(line);
    }

    /// A gang ends, is cancelled, or has stopped.
    fn end(&mut self, rng: &mut Rng) {
        let mut ways: Vec<String> = Vec::new();
        for (_, gang) in self.bench.world.gangs() {
            let name = &gang.spec.name;
            match gang.phase {
                Phase::Waiting | Phase::Assembling(_) => {
                    ways.extend(rng.percent(30).then(|| format!("cancel {name}")));
                }
                Phase::Admitted { .. } => ways.push(format!("started {name}")),
                Phase::Running { .. } if gang.resize.is_some() => {
                    ways.extend(std::iter::repeat_n(format!("resized {name}"), 3));
                    ways.push(format!("declined {name}"));
                    ways.push(format!("end {name}"));
                }
                Phase::Running { .. } => ways.push(format!("end {name}")),
                // A victim may end by itself.
                Phase::Stopping => {
                    ways.extend(std::iter::repeat_n(format!("stopped {name}"), 4));
                    ways.push(format!("end {name}"));
                }
            }
        }
        if !ways.is_empty() {
            let line = ways.swap_remove(rng.below(ways.len()));
            self.line(line);
        }
    }
}
