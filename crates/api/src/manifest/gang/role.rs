//! Reads the roles of a gang.

use std::collections::{BTreeMap, HashMap};

use muster_core::gang::{Request, RoleSpec};

use crate::manifest::amounts;
use crate::manifest::gang::constraints::constraints;
use crate::manifest::gang::gang_spec::{RunSpec, Template};
use crate::yaml::fields::Fields;
use crate::yaml::names::{LABEL_RULE, is_label};
use crate::yaml::opaque;
use crate::yaml::value::Value;

/// The largest number of members of a role; ten times the largest known cluster.
const MAX_MEMBERS: u32 = 1_000_000;
/// The largest number of roles of a gang; a seat refers to its role with 16 bits.
const MAX_ROLES: usize = 1_000;

/// The roles of a gang, and in the same order the fields that only some hosts use.
#[derive(Default)]
pub(crate) struct Roles {
    pub(crate) specs: Vec<RoleSpec>,
    pub(crate) runs: Vec<Option<RunSpec>>,
    pub(crate) templates: Vec<Option<Template>>,
}

/// Reads `spec.roles`, with the processes and pod templates of the members.
pub(crate) fn read_all(spec: &Fields<'_>) -> Roles {
    let mut roles = Roles::default();
    let Some(list) = spec.need("roles") else { return roles };
    let values = list.items("role").unwrap_or_default();
    if values.len() > MAX_ROLES {
        list.error(format!("must be at most {MAX_ROLES} roles, not {}", values.len()));
    }
    let mut names: HashMap<&str, usize> = HashMap::new();
    for (index, value) in values.iter().enumerate() {
        let Some(fields) = value.fields() else { continue };
        let name = fields.need("name");
        let text = name.as_ref().and_then(|value| value.text_with(is_label, LABEL_RULE));
        if let (Some(value), Some(text)) = (name, text)
            && let Some(first) = names.insert(text, index)
        {
            value.error(format!("`{text}` is already the name of roles[{first}]"));
        }
        roles.specs.push(read(text.unwrap_or_default(), &fields));
        roles.runs.push(fields.get("run").and_then(|value| run(&value)));
        roles.templates.push(fields.get("template").and_then(|value| template(&value)));
        fields.done();
    }
    roles
}

fn read(name: &str, fields: &Fields<'_>) -> RoleSpec {
    let min = fields.need("min").and_then(|value| value.count(1..=MAX_MEMBERS));
    let (min, max) = (min.unwrap_or(1), members_at_most(fields, min));
    let resources = fields.get("resources");
    let request = resources.as_ref().map(amounts::request).unwrap_or_default();
    if let Some(resources) = &resources {
        countable(&request, max, resources);
    }
    let mut constraints = constraints(fields);
    if let Some(gpu) = fields.get("gpu") {
        if request.gpu.is_none() {
            gpu.warn("says what GPUs must be like, but `resources` asks for none");
        }
        if let Some(gpu) = gpu.fields() {
            constraints.gpu_models = gpu.texts("models").into_iter().map(Into::into).collect();
            let memory = gpu.get("memory").and_then(|value| amounts::bytes(&value));
            constraints.gpu_memory = memory.unwrap_or_default();
            gpu.done();
        }
    }
    RoleSpec { name: name.into(), min, max, request, constraints, spread: Vec::new() }
}

/// `max`, or `min` when the role is rigid.
fn members_at_most(fields: &Fields<'_>, min: Option<u32>) -> u32 {
    let least = min.unwrap_or(1);
    let Some(value) = fields.get("max") else { return least };
    let max = value.count(1..=MAX_MEMBERS);
    if let (Some(max), Some(min)) = (max, min)
        && max < min
    {
        let blamed = fields.get("min").unwrap_or(value);
        blamed.error(format!("min {min} is above max {max}"));
        return min;
    }
    max.unwrap_or(least)
}

/// Reports a role whose members together request more than 63 bits can count.
fn countable(request: &Request, max: u32, resources: &Value<'_>) {
    let total = |amount: &u64| u128::from(*amount) * u128::from(max);
    let over = request.amounts.iter().find(|(_, amount)| total(amount) > i64::MAX as u128);
    if let Some((name, _)) = over {
        resources.error(format!("{max} members together request too much `{name}` to count"));
    }
}

fn run(value: &Value<'_>) -> Option<RunSpec> {
    let fields = value.fields()?;
    let words = fields.need("command").and_then(|value| value.items("word"));
    let mut env = BTreeMap::new();
    for (name, value) in fields.pairs("env") {
        if name.is_empty() || name.contains(['=', '\0']) {
            value.error("a variable's name must not be empty nor hold `=`");
        }
        if let Some(text) = value.any_text() {
            env.insert(name.to_owned(), text.to_owned());
        }
    }
    let directory = fields.text("directory").map(str::to_owned);
    fields.done();
    let command = words?.iter().filter_map(Value::any_text).map(str::to_owned).collect();
    Some(RunSpec { command, env, directory })
}

fn template(value: &Value<'_>) -> Option<Template> {
    value.fields().map(opaque::mapping)
}
