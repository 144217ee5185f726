//! Describes the request of a gang.

use muster_core::gang::{Closeness, GangSpec};
use muster_core::time::Span;

/// The request of a gang in a few words.
pub(crate) fn gang_request(spec: &GangSpec) -> String {
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
