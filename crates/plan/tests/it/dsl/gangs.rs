//! Gangs from words.
//!
//! Roles are `COUNTxREQUEST`, joined by `+`; a request is `8gpu`, `0.5gpu`, `2*0.5gpu`, `50cpu`, `10gi`, `32efa`,
//! joined by `/`. Constraints hold for every role, or for one when they begin with `r0.`, `r1.`, ...

use std::sync::Arc;

use muster_core::constraint::{Constraints, Preference, Requirement, Term, Test, Toleration};
use muster_core::device::{GpuRequest, WHOLE};
use muster_core::gang::{Closeness, GangSpec, ProvisioningMode, RoleSpec, Signal, Spread};
use muster_core::money::Money;
use muster_core::resource::{CPU, MEMORY};
use muster_core::time::{Span, Time};
use muster_testkit::build;

use super::specs::{EFA, effect, expand, gib, label};

pub(super) fn gangs(rest: &str) -> Vec<GangSpec> {
    let mut words = rest.split_whitespace();
    let (name, roles) = (words.next().expect("a name"), words.next().expect("roles"));
    let options: Vec<&str> = words.collect();
    let gang = |name: &String| {
        let mut spec = build::gang(name, 1, 0);
        spec.roles = roles.split('+').enumerate().map(|(i, text)| role(i, text)).collect();
        options.iter().for_each(|word| describe(&mut spec, word));
        spec
    };
    expand(name).iter().map(gang).collect()
}

fn role(at: usize, text: &str) -> RoleSpec {
    let (count, request) = text.split_once('x').expect("a role such as 4x8gpu");
    let (min, max) = count.split_once("..").unwrap_or((count, count));
    let mut role = build::role(&format!("r{at}"), min.parse().expect("a number"), 0);
    role.max = max.parse().expect("a number");
    for part in request.split('/') {
        let unit = part.find(|c: char| c.is_ascii_alphabetic()).expect("a unit");
        let (number, unit) = part.split_at(unit);
        match unit {
            "gpu" => role.request.gpu = gpus(number),
            "cpu" => {
                let cores: u64 = number.parse().expect("cores");
                role.request.amounts.insert(CPU.into(), cores * 1_000);
            }
            "gi" => {
                role.request.amounts.insert(MEMORY.into(), gib(number));
            }
            "efa" => {
                role.request.amounts.insert(EFA.into(), number.parse().expect("adapters"));
            }
            _ => panic!("no such unit: {part}"),
        }
    }
    role
}

/// `8` whole devices, `0.5` of one, or `2*0.5`.
fn gpus(text: &str) -> Option<GpuRequest> {
    let (count, share) = match text.split_once('*') {
        Some((count, share)) => (count, share),
        None if text.contains('.') => ("1", text),
        None => (text, "1"),
    };
    let count = count.parse().expect("a number of GPUs");
    let share = (share.parse::<f64>().expect("a share") * f64::from(WHOLE)).round() as u16;
    (count > 0).then(|| GpuRequest { resource: build::GPU.into(), count, share })
}

fn describe(spec: &mut GangSpec, word: &str) {
    if let Some((key, value)) = word.split_once('=') {
        match key {
            "queue" => spec.queue = value.into(),
            "prio" => spec.priority = value.parse().expect("a number"),
            "user" => spec.user = value.into(),
            "for" => spec.expected_duration = Some(value.parse().expect("a time")),
            "deadline" => {
                spec.deadline = Some(Time::ZERO + value.parse::<Span>().expect("a time"));
            }
            "cost" => spec.cost_of_waiting = Money::from_units(value.parse().expect("a price")),
            "moves" => {
                spec.disruption.preemptible = true;
                spec.disruption.min_runtime = value.parse().expect("a time");
            }
            "grace" => spec.disruption.grace = value.parse().expect("a time"),
            "minrun" => spec.disruption.min_runtime = value.parse().expect("a time"),
            "save" => {
                let checkpoint = spec.disruption.checkpoint.get_or_insert_default();
                match value {
                    "told" => checkpoint.signal = Some(Signal::SigUsr1),
                    every => checkpoint.every = Some(every.parse().expect("a time")),
                }
            }
            "restart" => {
                let checkpoint = spec.disruption.checkpoint.get_or_insert_default();
                checkpoint.restart = value.parse().expect("a time");
            }
            "efficiency" => spec.scaling.efficiency = value.parse().expect("thousandths"),
            "resize" => spec.scaling.resize = value.parse().expect("a time"),
            "timeout" => spec.provisioning.timeout = value.parse().expect("a time"),
            "attempts" => spec.provisioning.attempts = value.parse().expect("a number"),
            "topology" => spec.closeness = Some(closeness(value)),
            "spread" => spec.roles.iter_mut().for_each(|role| role.spread = spread(value)),
            _ => constrain(spec, word),
        }
    } else if word == "preemptible" {
        spec.disruption.preemptible = true;
    } else if word == "never-preempts" {
        spec.disruption.never_preempts = true;
    } else if word == "declared" {
        spec.priority_is_declared = true;
    } else if word == "never" {
        spec.provisioning.mode = ProvisioningMode::Never;
    } else {
        constrain(spec, word);
    }
}

/// `LABEL`, or `LABEL,LABEL`, each with the words `/WORDS` if others say so too.
fn spread(text: &str) -> Vec<Spread> {
    let one = |text: &str| {
        let (over, among) = text.split_once('/').unwrap_or((text, text));
        Spread { over: over.into(), among: among.into() }
    };
    text.split(',').map(one).collect()
}

fn closeness(text: &str) -> Closeness {
    match text.split_once(':').expect("required:rack or preferred:rack") {
        ("required", level) => Closeness::Required(level.into()),
        ("preferred", level) => Closeness::Preferred(level.into()),
        _ => panic!("no such closeness: {text}"),
    }
}

fn constrain(spec: &mut GangSpec, word: &str) {
    let one = word.strip_prefix('r').and_then(|rest| rest.split_once('.'));
    let one = one.and_then(|(at, word)| Some((at.parse::<usize>().ok()?, word)));
    match one {
        Some((at, word)) => constraint(&mut spec.roles[at].constraints, word),
        None => spec.roles.iter_mut().for_each(|role| constraint(&mut role.constraints, word)),
    }
}

fn constraint(all: &mut Constraints, word: &str) {
    let (kind, text) = word.split_once([':', '=']).unwrap_or_else(|| panic!("what is {word}?"));
    match kind {
        "if" => all.all.extend(term(text)),
        "any" => all.any = text.split('|').map(term).collect(),
        "wish" => {
            let (weight, text) = text.split_once(':').expect("wish:WEIGHT:TERM");
            let weight = weight.parse().expect("a weight");
            all.prefer.push(Preference { weight, term: term(text) });
        }
        "tolerate" => all.tolerations.push(toleration(text)),
        "model" => all.gpu_models = text.split(',').map(Arc::from).collect(),
        "gpumem" => all.gpu_memory = gib(text),
        _ => panic!("no such option of a gang: {word}"),
    }
}

fn term(text: &str) -> Term {
    text.split('&').map(requirement).collect()
}

/// `k=a,b`, `k!=a,b`, `k>3`, `k<3`, `k`, `!k`.
fn requirement(text: &str) -> Requirement {
    let values = |text: &str| text.split(',').map(Arc::from).collect();
    let number = |text: &str| text.parse().expect("a number");
    let (key, test) = if let Some((key, list)) = text.split_once("!=") {
        (key, Test::NotIn(values(list)))
    } else if let Some((key, list)) = text.split_once('=') {
        (key, Test::In(values(list)))
    } else if let Some((key, bound)) = text.split_once('>') {
        (key, Test::Gt(number(bound)))
    } else if let Some((key, bound)) = text.split_once('<') {
        (key, Test::Lt(number(bound)))
    } else if let Some(key) = text.strip_prefix('!') {
        (key, Test::DoesNotExist)
    } else {
        (text, Test::Exists)
    };
    Requirement { key: label(key), test }
}

/// `*`, `k`, `k=v`, each with an effect after a colon if only that effect is tolerated.
fn toleration(text: &str) -> Toleration {
    let (mark, only) = text.split_once(':').map_or((text, None), |(m, e)| (m, Some(effect(e))));
    let (key, value) = mark.split_once('=').map_or((mark, None), |(k, v)| (k, Some(v.into())));
    Toleration { key: (key != "*").then(|| key.into()), value, effect: only }
}
