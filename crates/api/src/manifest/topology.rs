//! Reads `kind: Topology`: the levels of the tree, widest first.

use std::collections::HashSet;

use muster_core::topology::{HOSTNAME, LevelSpec, Levels, NODE_LEVEL};

use crate::yaml::fields::Fields;
use crate::yaml::names::{KEY_RULE, LABEL_RULE, is_key, is_label};

/// The largest number of levels of a tree; real ones have three to six.
const MAX_LEVELS: usize = 16;

/// Reads the levels.
pub(crate) fn read(spec: &Fields<'_>) -> Levels {
    let list = spec.need("levels");
    let values = list.as_ref().and_then(|value| value.items("level")).unwrap_or_default();
    if let Some(list) = list.filter(|_| values.len() > MAX_LEVELS) {
        list.error(format!("must be at most {MAX_LEVELS} levels, not {}", values.len()));
    }
    let mut taken = HashSet::from([NODE_LEVEL, HOSTNAME]);
    let mut levels = Vec::new();
    for value in values {
        let Some(fields) = value.fields() else { continue };
        let mut unique = |name: &'static str, obeys: fn(&str) -> bool, rule: &str| {
            let value = fields.need(name)?;
            let text = value.text_with(obeys, rule)?;
            if !taken.insert(text) {
                value.error(format!("`{text}` is taken: every level has its own name and label"));
            }
            Some(text)
        };
        let name = unique("name", is_label, LABEL_RULE);
        let label = unique("label", is_key, KEY_RULE);
        fields.done();
        if let (Some(name), Some(label)) = (name, label) {
            levels.push(LevelSpec { name: name.into(), label: label.into() });
        }
    }
    Levels(levels)
}
