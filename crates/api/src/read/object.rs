//! Reads the parts that all objects share: `apiVersion`, `kind`, `metadata`, `spec`.

use muster_core::time::Span;
use muster_core::topology::Levels;

use crate::manifest::gang::constraints::labels;
use crate::manifest::gang::gang_spec;
use crate::manifest::gang::gang_spec::DeclaredGang;
use crate::manifest::node;
use crate::manifest::node::DeclaredNode;
use crate::manifest::pool::pool_spec;
use crate::manifest::pool::pool_spec::DeclaredPool;
use crate::manifest::queue::queue_spec;
use crate::manifest::queue::queue_spec::DeclaredQueue;
use crate::manifest::topology;
use crate::read::finding::Mark;
use crate::yaml::fields::Fields;
use crate::yaml::hint::{did_you_mean, listed};
use crate::yaml::names::{KEY_RULE, LABEL_RULE, NAME_RULE, is_key, is_label, is_name};
use crate::yaml::value::Value;

const API_VERSION: &str = "muster.sh/v1alpha1";
/// The prefix of annotations that simulating hosts read; a misspelt one would be ignored silently.
const SIM: &str = "sim.muster.sh/";
const SUBMIT_AFTER: &str = "sim.muster.sh/submit-after";
const RUN_TIME: &str = "sim.muster.sh/run-time";

/// All objects declared in all files, before they are checked against each other.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    pub(crate) topologies: Vec<(Levels, Mark)>,
    pub(crate) queues: Vec<DeclaredQueue>,
    pub(crate) pools: Vec<DeclaredPool>,
    pub(crate) nodes: Vec<DeclaredNode>,
    pub(crate) gangs: Vec<DeclaredGang>,
    /// Something could not be read at all, and a name without a declaration may have been declared there.
    pub(crate) incomplete: bool,
}

/// The name and the annotations of an object.
#[derive(Debug)]
pub(crate) struct Metadata<'a> {
    pub(crate) name: &'a str,
    pub(crate) namespace: &'a str,
    /// The name, for findings.
    pub(crate) mark: Mark,
    pub(crate) submit_after: Option<Span>,
    pub(crate) run_time: Option<Span>,
}

/// The kinds there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Gang,
    Queue,
    Pool,
    Topology,
    Node,
}

const KINDS: [(&str, Kind); 5] = [
    ("Gang", Kind::Gang),
    ("Queue", Kind::Queue),
    ("Pool", Kind::Pool),
    ("Topology", Kind::Topology),
    ("Node", Kind::Node),
];

impl Declared {
    /// Reads one document.
    pub(crate) fn read(&mut self, document: &Value<'_>) {
        if self.read_object(document).is_none() {
            self.incomplete = true;
        }
    }

    fn read_object(&mut self, document: &Value<'_>) -> Option<()> {
        let object = document.fields()?;
        if let Some(version) = object.get("apiVersion")
            && version.text().is_some_and(|text| text != API_VERSION)
        {
            version.error(format!("must be `{API_VERSION}`"));
        }
        let kind = kind(&object.need("kind")?)?;
        let metadata = metadata(&object, kind, document);
        let spec = object.need("spec");
        object.done();
        let (metadata, spec) = (metadata?, spec?.fields()?);
        match kind {
            Kind::Gang => self.gangs.push(gang_spec::read(metadata, &spec)),
            Kind::Queue => self.queues.push(queue_spec::read(metadata, &spec)),
            Kind::Pool => self.pools.push(pool_spec::read(metadata, &spec)),
            Kind::Node => self.nodes.push(node::read(metadata, &spec)),
            Kind::Topology => self.topologies.push((topology::read(&spec), metadata.mark)),
        }
        spec.done();
        Some(())
    }
}

fn kind(value: &Value<'_>) -> Option<Kind> {
    let text = value.text()?;
    let found = KINDS.iter().find(|(name, _)| *name == text);
    if found.is_none() {
        let names = || KINDS.iter().map(|(name, _)| *name);
        let hint = did_you_mean(text, names());
        value
            .error(format!("`{text}` is no kind Muster reads: it reads {}{hint}", listed(names())));
    }
    found.map(|(_, kind)| *kind)
}

/// `None` when there is no usable name. There is one topology, so it needs none.
fn metadata<'a>(object: &Fields<'a>, kind: Kind, document: &Value<'a>) -> Option<Metadata<'a>> {
    let value = match kind {
        Kind::Topology => object.get("metadata"),
        _ => Some(object.need("metadata")?),
    };
    let mark = document.mark();
    let mut metadata =
        Metadata { name: "", namespace: "default", mark, submit_after: None, run_time: None };
    let Some(fields) = value.map_or(Some(None), |value| value.fields().map(Some))? else {
        return Some(metadata);
    };
    let name = if kind == Kind::Topology { fields.get("name") } else { fields.need("name") };
    let text = name.as_ref().and_then(|value| value.text_with(is_name, NAME_RULE));
    if kind == Kind::Gang {
        let namespace = fields.get("namespace");
        let namespace = namespace.and_then(|value| value.text_with(is_label, LABEL_RULE));
        metadata.namespace = namespace.unwrap_or(metadata.namespace);
    }
    labels(&fields, "labels");
    annotations(&fields, &mut metadata);
    fields.done();
    if kind == Kind::Topology {
        return Some(metadata);
    }
    Some(Metadata { name: text?, mark: name?.mark(), ..metadata })
}

fn annotations(fields: &Fields<'_>, metadata: &mut Metadata<'_>) {
    for (key, value) in fields.pairs("annotations") {
        let span = || value.parsed("a duration such as 90s, 15m or 1h30m");
        match key {
            SUBMIT_AFTER => metadata.submit_after = span(),
            RUN_TIME => metadata.run_time = span(),
            _ if key.starts_with(SIM) => {
                let hint = did_you_mean(key, [SUBMIT_AFTER, RUN_TIME]);
                value.error(format!("unknown annotation of `{SIM}`{hint}"));
            }
            _ if !is_key(key) => value.error(format!("an annotation key {KEY_RULE}")),
            _ => drop(value.any_text()),
        }
    }
}
