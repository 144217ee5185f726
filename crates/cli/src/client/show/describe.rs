//! `muster describe`.

use clap::Args as ClapArgs;
use muster_server::Kind;
use serde_json::Value;

use crate::client::connection::address::Query;
use crate::client::connection::connect::ConnectOptions;
use crate::client::follow::events::{StreamEvent, past};
use crate::client::output::age;
use crate::client::output::columns;
use crate::client::output::kinds::{KindArg, full_name, with_other_namespaces, word};
use crate::{stdout, yaml};

/// Show one object in full, with its recent events.
///
/// Events are those that the control plane still remembers.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The kind of the object
    kind: KindArg,
    /// The name of the object
    name: String,
    /// The namespace of the gang
    #[arg(short, long)]
    namespace: Option<String>,
    /// The number of recent events
    #[arg(long, value_name = "N", default_value_t = 20)]
    events: usize,
    #[command(flatten)]
    connect: ConnectOptions,
}

const EXAMPLES: &str = "\
Examples:
  muster describe gang train
  muster describe pool spot --events 50";

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let api = args.connect.api()?;
    let kind = args.kind.kind();
    let name = full_name(&api, kind, args.namespace.as_deref(), &args.name);
    let object = match api.one(kind, &name).await {
        Ok(object) => object,
        Err(error) if kind == Kind::Gang => {
            return Err(with_other_namespaces(&api, &name, error).await);
        }
        Err(error) => return Err(error.into()),
    };
    stdout::line(format_args!("{} {name}", word(kind)));
    facts(kind, &object).iter().for_each(stdout::line);
    section("Spec", object.get("spec"));
    section("Status", object.get("status"));
    let (namespace, short) = match name.split_once('/') {
        Some((namespace, short)) if kind == Kind::Gang => (Some(namespace), short),
        _ => (None, &*name),
    };
    let about = Query::default()
        .with("kind", format!("{kind:?}"))
        .maybe("namespace", namespace)
        .with("name", short);
    let said = said(past(&api, &about).await?);
    stdout::line("\nEvents");
    if said.is_empty() {
        stdout::line("  none");
    }
    said[said.len().saturating_sub(args.events)..].iter().for_each(stdout::line);
    Ok(())
}

/// The most important fields. Empty fields are left out.
fn facts(kind: Kind, object: &Value) -> Vec<String> {
    let now = age::now();
    let text = |field: &str| columns::text(object, field);
    let all: Vec<(&str, String)> = match kind {
        Kind::Gang => vec![
            ("Phase", columns::phase(object)),
            ("Why", text("/status/message")),
            ("Ready", text("/status/progress")),
            ("Queue", text("/spec/queue")),
            ("User", text("/spec/user")),
            ("Queue position", text("/status/position")),
            ("Order", text("/status/order")),
            ("Submitted", moment(object, "/metadata/creationTimestamp")),
            ("Expected start", moment(object, "/status/expectedStart")),
            ("Running since", moment(object, "/status/runningSince")),
            ("Ended", moment(object, "/status/endedAt")),
        ],
        _ => columns::of(kind)
            .iter()
            .map(|column| (column.title, (column.cell)(object, now)))
            .collect(),
    };
    let all = all.into_iter().filter(|(title, value)| !value.is_empty() && *title != "NAME");
    all.map(|(title, value)| {
        let (first, rest) = title.split_at(1);
        let title = format!("{first}{}:", rest.to_lowercase());
        format!("  {title:<16} {}", value.replace('\n', "\n                   "))
    })
    .collect()
}

/// A time field of an object, with its distance from now.
fn moment(object: &Value, field: &str) -> String {
    let now = age::now();
    age::instant(object, field).map_or_else(String::new, |at| {
        let far = match at > now {
            true => age::until(at, now),
            false => format!("{} ago", age::short(now.since(at))),
        };
        format!("{} ({far})", age::clock(at))
    })
}

fn section(title: &str, part: Option<&Value>) {
    let Some(part) = part.filter(|part| part.as_object().is_some_and(|fields| !fields.is_empty()))
    else {
        return;
    };
    stdout::line(format_args!("\n{title}"));
    yaml::document(part).lines().for_each(|line| stdout::line(format_args!("  {line}")));
}

fn said(news: Vec<StreamEvent>) -> Vec<String> {
    let line = |news| match news {
        StreamEvent::Message { at, reason, message, warning, .. } => {
            let mark = if warning { "warning: " } else { "" };
            Some(format!("  {}  {reason}: {mark}{message}", age::clock(at.0)))
        }
        StreamEvent::Set { .. } | StreamEvent::Gone { .. } | StreamEvent::Gap { .. } => None,
    };
    news.into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_fields_are_left_out() {
        let gang = json!({
            "metadata": {"name": "a", "namespace": "b"},
            "spec": {"queue": "research"},
            "status": {"phase": "Waiting", "message": "it waits\nfor nodes"},
        });
        let expected = [
            "  Phase:           Waiting",
            "  Why:             it waits\n                   for nodes",
            "  Queue:           research",
        ];
        assert_eq!(facts(Kind::Gang, &gang), expected);
    }
}
