//! What is done once it is written down: keepers started and told, questions answered, directories removed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Command;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::daemon::gangs::seats;
use crate::daemon::inputs::Input;
use crate::daemon::state::Daemon;
use crate::daemon::supervise::{Attended, Launched, attend};
use crate::keeper::files::{HOSTFILE, PROGRAM, WORLD};
use crate::keeper::run_plan::RunPlan;
use crate::keeper::socket::client::Order;
use crate::system::scarcity::is_scarcity;

/// How long after a keeper could not be started it is tried again.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(1);

/// Something to do after the commit.
pub(crate) enum Deed {
    /// Start the keeper of a run, and attend to it.
    Launch(Box<RunPlan>, PathBuf),
    /// Attend to the keeper of a run that was started before.
    Attend(u64, PathBuf),
    /// Leave a note for members.
    Write(PathBuf, String),
    /// Tell a keeper something.
    Tell(UnboundedSender<Order>, Order),
    /// Answer somebody.
    Reply(Box<dyn FnOnce() + Send>),
    /// What a gang's members have printed is not wanted any more.
    Remove(PathBuf),
}

impl Daemon {
    pub(crate) fn act(&mut self) {
        for deed in std::mem::take(&mut self.deeds) {
            match deed {
                Deed::Launch(plan, directory) => {
                    let _inside = self.runtime.enter();
                    match launch(&plan, &directory, &self.environment) {
                        Ok(keeper) => self.attend_to(plan.run, directory, Some(keeper)),
                        Err(error) => {
                            tracing::error!(gang = &*plan.gang, %error, "no keeper could be started");
                            self.try_later(plan.run, &error);
                        }
                    }
                }
                Deed::Attend(run, directory) => self.attend_to(run, directory, None),
                Deed::Write(file, text) => {
                    // Not half of it: it is there whole, or as it was.
                    let part = file.with_extension("part");
                    let written = std::fs::write(&part, text);
                    if let Err(error) = written.and_then(|()| std::fs::rename(&part, &file)) {
                        tracing::warn!(file = %file.display(), %error, "cannot be written");
                    }
                }
                Deed::Tell(to, order) => drop(to.send(order)),
                Deed::Reply(reply) => reply(),
                Deed::Remove(directory) => {
                    self.runtime.spawn(async move {
                        let _ = tokio::fs::remove_dir_all(directory).await;
                    });
                }
            }
        }
    }

    /// A keeper that could not be started is as good as gone, after a moment in which there may be room again.
    fn try_later(&self, run: u64, error: &std::io::Error) {
        let (why, later) = (Some(error.to_string()), is_scarcity(error));
        let inputs = self.inputs.clone();
        self.runtime.spawn(async move {
            tokio::time::sleep(AGAIN).await;
            let _ = inputs.send(Input::KeeperGone { run, alive_until: 0, why, later });
        });
    }

    fn attend_to(&mut self, run: u64, directory: PathBuf, keeper: Option<Launched>) {
        let (orders, heard) = unbounded_channel();
        let of = Attended { run, directory, group: self.trees.run(&self.owner, run) };
        let task = self.runtime.spawn(attend(of, keeper, heard, self.inputs.clone()));
        self.attending.retain(|task| !task.is_finished());
        self.attending.push(task.abort_handle());
        let Some(gang) = self.runs.get(&run).and_then(|name| self.gangs.get_mut(name)) else {
            return;
        };
        if let Some(mine) = gang.run.as_mut().filter(|mine| mine.number == run) {
            for order in mine.pending.drain(..) {
                let _ = orders.send(order);
            }
            mine.orders = Some(orders);
        }
    }

    /// Where everything about a run is.
    pub(crate) fn run_directory(&self, run: u64) -> PathBuf {
        self.directory.join("runs").join(run.to_string())
    }
}

/// Starts a keeper, which outlives this process. What is returned is done when the keeper is.
fn launch(
    plan: &RunPlan,
    directory: &std::path::Path,
    environment: &[(OsString, OsString)],
) -> std::io::Result<Launched> {
    plan.write(directory)?;
    std::fs::write(directory.join(HOSTFILE), seats::hostfile(&plan.members))?;
    let members = u32::try_from(plan.members.len()).unwrap_or(u32::MAX);
    std::fs::write(directory.join(WORLD), seats::world(members, None))?;
    let complaints = std::fs::File::create(directory.join("keeper.err"))?;
    let mut keeper = Command::new(PROGRAM)
        .arg0("muster")
        .arg("keep")
        .arg(directory)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(complaints)
        .spawn()?;
    let pid = keeper.id();
    let done = tokio::spawn(async move { keeper.wait().await.ok()?.code() });
    Ok(Launched { pid, done })
}
