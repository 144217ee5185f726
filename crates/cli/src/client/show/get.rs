//! `muster get`.

use clap::Args as ClapArgs;
use muster_server::Kind;
use serde_json::Value;

use crate::client::connection::address::Query;
use crate::client::connection::api::Api;
use crate::client::connection::connect::ConnectOptions;
use crate::client::follow::view::name_of;
use crate::client::follow::watch::watch;
use crate::client::output::kinds::{KindArg, full_name, with_other_namespaces, word};
use crate::client::output::printer::{Output, Printer};
use crate::exit::UsageError;

/// List gangs, queues, pools, nodes or orders.
///
/// Gangs are those of one namespace: that of -n, of the context, or `default`; -A lists all. With --watch each change
/// is printed as it happens, also after a lost connection.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The kind; `gg`, `mq`, `mpool`, `no` and `mo` are short names
    #[arg(value_name = "KIND")]
    kind: KindArg,
    /// The name of one object
    name: Option<String>,
    #[command(flatten)]
    pub(crate) show: Show,
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    pub(crate) connect: ConnectOptions,
}

/// How to show the objects.
#[derive(ClapArgs, Clone, Debug)]
pub(crate) struct Show {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
    /// Continue, and print each change
    #[arg(short, long)]
    pub(crate) watch: bool,
}

/// Which objects to show.
#[derive(ClapArgs, Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Of this namespace
    #[arg(short, long)]
    namespace: Option<String>,
    /// Of all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Only gangs of this queue
    #[arg(long)]
    queue: Option<String>,
    /// Only objects in this phase, such as running
    #[arg(long)]
    phase: Option<String>,
    /// Only gangs of this user
    #[arg(long)]
    user: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  muster get gangs                             the gangs of your namespace
  muster get gg -A --phase running -o wide     all running gangs, with nodes, restarts and messages
  muster get gangs --queue research --watch    every change in a queue, as it happens
  muster get gang train -o yaml                one gang in full
  muster get nodes -o json | jq '.items[] | select(.status.ready | not) | .metadata.name'";

impl Args {
    /// All objects of a kind.
    pub(crate) fn all(
        kind: KindArg,
        name: Option<String>,
        show: Show,
        connect: ConnectOptions,
    ) -> Self {
        Self { kind, name, show, wanted: Wanted::default(), connect }
    }
}

/// The filter, once the control plane and its default namespace are known.
pub(crate) struct Filter {
    pub(crate) kind: Kind,
    pub(crate) namespace: Option<String>,
    queue: Option<String>,
    phase: Option<String>,
    user: Option<String>,
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let api = args.connect.api()?;
    let kind = args.kind.kind();
    let Wanted { namespace, all_namespaces, queue, phase, user } = &args.wanted;
    if kind != Kind::Gang && (queue.is_some() || user.is_some()) {
        let why = format!("--queue and --user apply to gangs only, not to {}s", word(kind));
        return Err(UsageError(why).into());
    }
    if let Some(name) = &args.name {
        return one(&api, kind, namespace.as_deref(), name, &args.show).await;
    }
    let usual = || api.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let namespace = match kind {
        Kind::Gang if !all_namespaces => Some(namespace.clone().unwrap_or_else(usual)),
        Kind::Order => namespace.clone(),
        _ => None,
    };
    let filter =
        Filter { kind, namespace, queue: queue.clone(), phase: phase.clone(), user: user.clone() };
    let mut printer = Printer::new(kind, args.show.output, filter.namespace.is_none());
    if args.show.watch {
        return watch(&api, &filter, &mut printer).await;
    }
    let list = api.list(kind, &filter.query()).await?;
    printer.list(&list.items);
    if list.items.is_empty() {
        report_empty(&api, &filter).await;
    }
    Ok(())
}

async fn one(
    api: &Api,
    kind: Kind,
    namespace: Option<&str>,
    name: &str,
    show: &Show,
) -> anyhow::Result<()> {
    if show.watch {
        return Err(UsageError("--watch is for lists: leave the name out".to_owned()).into());
    }
    let name = full_name(api, kind, namespace, name);
    let object = match api.one(kind, &name).await {
        Ok(object) => object,
        Err(error) if kind == Kind::Gang => {
            return Err(with_other_namespaces(api, &name, error).await);
        }
        Err(error) => return Err(error.into()),
    };
    Printer::new(kind, show.output, false).only(&object);
    Ok(())
}

/// Reports an empty list, and whether other namespaces have objects.
async fn report_empty(api: &Api, filter: &Filter) {
    let kind = word(filter.kind);
    let Some(namespace) = &filter.namespace else { return eprintln!("there are no {kind}s") };
    let others = api.has_any(filter.kind).await.unwrap_or(false);
    let hint = if others { "; -A shows all namespaces" } else { "" };
    eprintln!("there are no such {kind}s in namespace {namespace}{hint}");
}

impl Filter {
    /// The query for the server.
    pub(crate) fn query(&self) -> Query {
        Query::default()
            .maybe("namespace", self.namespace.as_deref())
            .maybe("queue", self.queue.as_deref())
            .maybe("phase", self.phase.as_deref())
            .maybe("user", self.user.as_deref())
    }

    /// Whether an object of the kind matches, by the server's rules.
    pub(crate) fn wants(&self, object: &Value) -> bool {
        let text = |field: &str| object.pointer(field).and_then(Value::as_str);
        let is = |field: &str, wanted: &Option<String>| {
            wanted.as_deref().is_none_or(|wanted| text(field) == Some(wanted))
        };
        let phase = self.phase.as_deref().is_none_or(|wanted| {
            text("/status/phase").is_some_and(|phase| phase.eq_ignore_ascii_case(wanted))
        });
        let namespace = match self.kind {
            Kind::Gang => self.namespace.as_ref().is_none_or(|wanted| {
                name_of(Kind::Gang, object).split_once('/').is_some_and(|(of, _)| of == wanted)
            }),
            _ => is("/spec/gang/namespace", &self.namespace),
        };
        namespace && phase && is("/spec/queue", &self.queue) && is("/spec/user", &self.user)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn watch_filters_as_the_list_does() {
        let filter = Filter {
            kind: Kind::Gang,
            namespace: Some("research".to_owned()),
            queue: Some("q".to_owned()),
            phase: Some("running".to_owned()),
            user: None,
        };
        let gang = |namespace: &str, queue: &str, phase: &str| {
            json!({"metadata": {"name": "a", "namespace": namespace}, "spec": {"queue": queue},
                   "status": {"phase": phase}})
        };
        assert!(filter.wants(&gang("research", "q", "Running")));
        assert!(!filter.wants(&gang("sales", "q", "Running")));
        assert!(!filter.wants(&gang("research", "r", "Running")));
        assert!(!filter.wants(&gang("research", "q", "Waiting")));
        assert_eq!(filter.query().on(""), "?namespace=research&queue=q&phase=running");
    }
}
