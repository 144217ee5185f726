//! A toy host that stores gangs on a board and runs none. It refuses requests as a real host does.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use muster_api::crd::Stamp;
use muster_core::time::Time;
use muster_server::{
    Answer, Applied, AppliedEffect, Board, Caller, Change, GangName, Host, Kind, LogPart, LogQuery,
    Logs, Note, Refused, Usage, UsageRequest, WhatIf, Why,
};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

/// The toy host.
#[derive(Debug)]
pub(crate) struct Toy {
    pub(crate) board: Arc<Board>,
    /// The number of changes it was asked for.
    pub(crate) asked: AtomicUsize,
    /// Releases requests that change the gang `slow`.
    pub(crate) go_on: Arc<Notify>,
}

/// The time of every entry.
pub(crate) const AT: Stamp = Stamp(Time(1_800_000_000_000));

impl Toy {
    pub(crate) fn new() -> Arc<Self> {
        let toy = Self {
            board: Arc::new(Board::new(100)),
            asked: AtomicUsize::new(0),
            go_on: Arc::default(),
        };
        toy.seed();
        Arc::new(toy)
    }

    /// Adds one object of each kind.
    pub(crate) fn seed(&self) {
        let at = |kind: &str, name: &str| json!({"apiVersion": "muster.sh/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": {}});
        self.gang("research", "a", "research", "Running");
        for (kind, word, name) in [
            (Kind::Queue, "Queue", "research"),
            (Kind::Pool, "Pool", "gpus"),
            (Kind::Node, "Node", "node-1"),
        ] {
            self.board.set(AT, kind, &name.into(), at(word, name));
        }
        let mut order = at("Order", "order-1");
        order["spec"] = json!({"gang": {"namespace": "research", "name": "a"}});
        order["status"] = json!({"phase": "Complete"});
        self.board.set(AT, Kind::Order, &"order-1".into(), order);
    }

    /// Puts a gang on the board.
    pub(crate) fn gang(&self, namespace: &str, name: &str, queue: &str, phase: &str) {
        let object = json!({
            "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"queue": queue, "user": "alice"}, "status": {"phase": phase},
        });
        self.board.set(AT, Kind::Gang, &format!("{namespace}/{name}").into(), object);
    }

    /// Adds a note about a gang.
    pub(crate) fn say(&self, gang: &str, message: &str) {
        let said = Note {
            kind: Kind::Gang,
            name: gang.into(),
            reason: "Told".into(),
            message: message.into(),
            warning: false,
        };
        self.board.note(AT, said);
    }

    fn of(&self, gang: &GangName) -> Result<Arc<Value>, Refused> {
        let found = self.board.get(Kind::Gang, &gang.to_string());
        found.ok_or_else(|| Refused::NotFound(format!("there is no gang {gang}")))
    }

    fn read(&self, by: &Caller, text: &str) -> Result<Vec<(Kind, Arc<str>, Value)>, Refused> {
        muster_api::read_alone("body", text).map_err(Refused::Findings)?;
        let objects = muster_api::foreign("body", text).map_err(Refused::Findings)?;
        objects.into_iter().map(|object| owned(by, object)).collect()
    }

    fn try_apply(&self, by: &Caller, text: &str, dry: bool) -> Result<Vec<Applied>, Refused> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let objects = self.read(by, text)?;
        let apply = |(kind, name, object): (Kind, Arc<str>, Value)| {
            let effect = match self.board.get(kind, &name) {
                None => AppliedEffect::Created,
                Some(known) if *known == object => AppliedEffect::Unchanged,
                Some(_) => AppliedEffect::Changed,
            };
            if !dry {
                self.board.set(AT, kind, &name, object);
            }
            Applied { kind, name, effect, warnings: Vec::new() }
        };
        Ok(objects.into_iter().map(apply).collect())
    }

    fn try_change(
        &self,
        by: &Caller,
        gang: &GangName,
        change: &Change,
    ) -> Result<Arc<Value>, Refused> {
        let mut object = (*self.of(gang)?).clone();
        may(by, &object)?;
        match change {
            Change::Cancel => object["status"]["phase"] = json!("Failed"),
            Change::Hold => object["spec"]["held"] = json!(true),
            Change::Release => object["spec"]["held"] = json!(false),
            Change::Scale { min: Some(min), max: Some(max), .. } if min > max => {
                return Err(Refused::Invalid(format!("min {min} is above max {max}")));
            }
            Change::Scale { min, max, .. } => object["spec"]["scaled"] = json!([min, max]),
        }
        self.board.set(AT, Kind::Gang, &gang.to_string().into(), object);
        self.of(gang)
    }

    fn try_remove(&self, by: &Caller, kind: Kind, name: &str) -> Result<(), Refused> {
        if kind == Kind::Order {
            return Err(Refused::Unsupported("orders are the planner's".into()));
        }
        let found = self.board.get(kind, name);
        let found = found.ok_or_else(|| Refused::NotFound(format!("there is no {name}")))?;
        if kind == Kind::Gang {
            may(by, &found)?;
        }
        if kind == Kind::Queue && self.board.count(Kind::Gang) > 0 {
            return Err(Refused::Conflict(format!("there are gangs in {name}")));
        }
        self.board.remove(AT, kind, &name.into());
        Ok(())
    }
}

fn may(by: &Caller, gang: &Value) -> Result<(), Refused> {
    let queue = gang["spec"]["queue"].as_str().unwrap_or("default");
    if by.may_use(queue) {
        return Ok(());
    }
    Err(Refused::Forbidden(format!("{} may not use the queue {queue}", by.name)))
}

/// An object with its name, if the caller may apply it.
fn owned(by: &Caller, mut object: Value) -> Result<(Kind, Arc<str>, Value), Refused> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    object["apiVersion"] = json!("muster.sh/v1alpha1");
    let kind = match object["kind"].as_str() {
        Some("Gang") => {
            let namespace =
                object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
            object["metadata"]["namespace"] = json!(namespace);
            object["spec"]["queue"] = json!(object["spec"]["queue"].as_str().unwrap_or("default"));
            may(by, &object)?;
            return Ok((Kind::Gang, format!("{namespace}/{name}").into(), object));
        }
        Some("Queue") => Kind::Queue,
        Some("Pool") => Kind::Pool,
        Some("Node") => Kind::Node,
        other => return Err(Refused::Unsupported(format!("{other:?} is not kept here"))),
    };
    if !by.is_admin() {
        return Err(Refused::Forbidden(format!("only admins change a {kind:?}")));
    }
    Ok((kind, name.into(), object))
}

impl Host for Toy {
    fn board(&self) -> &Arc<Board> {
        &self.board
    }

    fn ready(&self) -> Result<(), String> {
        match self.board.get(Kind::Pool, "gpus") {
            Some(_) => Ok(()),
            None => Err("there is no pool yet".into()),
        }
    }

    fn apply(&self, by: Caller, manifests: String, dry_run: bool) -> Answer<Vec<Applied>> {
        let applied = self.try_apply(&by, &manifests, dry_run);
        let wait = manifests.contains("slow").then(|| self.go_on.clone());
        Box::pin(async move {
            if let Some(wait) = wait {
                wait.notified().await;
            }
            applied
        })
    }

    fn remove(&self, by: Caller, kind: Kind, name: String) -> Answer<()> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(ready(self.try_remove(&by, kind, &name)))
    }

    fn change(&self, by: Caller, gang: GangName, change: Change) -> Answer<Arc<Value>> {
        assert_ne!(gang.name, "bug", "a bug");
        Box::pin(ready(self.try_change(&by, &gang, &change)))
    }

    fn why(&self, gang: GangName) -> Answer<Why> {
        let name = gang.to_string();
        let lines = vec!["it waits for nothing".into()];
        Box::pin(ready(self.of(&gang).map(|_| Why { name, lines, expected_start: Some(AT) })))
    }

    fn what_if(&self, by: Caller, manifests: String) -> Answer<Vec<WhatIf>> {
        let by = Caller { rights: muster_server::Rights::Admin, ..by };
        let read = self.read(&by, &manifests);
        let would = |(_, name, _): (Kind, Arc<str>, Value)| WhatIf {
            name: name.to_string(),
            starts: Some(AT),
            nodes: 1,
            hourly: 2.5,
            cost: None,
            lines: vec![],
        };
        Box::pin(ready(read.map(|objects| objects.into_iter().map(would).collect())))
    }

    fn usage(&self, asked: UsageRequest) -> Answer<Vec<Usage>> {
        let usage = Usage {
            key: format!("{:?}", asked.by),
            gangs: 1,
            runs: 1,
            gpu_seconds: 1.0,
            cpu_seconds: 1.0,
            waited_seconds: asked.to.since(asked.from).0 as f64,
            cost: 0.5,
        };
        Box::pin(ready(Ok(vec![usage])))
    }

    fn logs(&self, gang: GangName, which: LogQuery) -> Answer<Logs> {
        let found = self.of(&gang);
        let go_on = self.go_on.clone();
        Box::pin(async move {
            found?;
            let (told, logs) = mpsc::channel(4);
            tokio::spawn(async move {
                let ranks = (0..2).filter(|rank| which.member.is_none_or(|member| member == *rank));
                for member in ranks {
                    let text = "hello\nworld\n".to_owned();
                    let role = "worker".into();
                    let _ = told.send(LogPart { member, role, stderr: false, text }).await;
                }
                // The gang `endless` never ends.
                if which.follow && gang.name == "endless" {
                    go_on.notified().await;
                }
            });
            Ok(logs)
        })
    }

    fn metrics(&self) -> String {
        "# TYPE muster_gangs gauge\nmuster_gangs 1\n".into()
    }
}
