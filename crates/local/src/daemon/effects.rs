//! Side effects after the commit: starts keepers, sends orders to them, answers requests, removes directories.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Command;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::daemon::gangs::seats;
use crate::daemon::inputs::Input;
use crate::daemon::state::Daemon;
use crate::daemon::supervise::{KeeperProcess, SupervisedRun, supervise};
use crate::keeper::files::{HOSTFILE, PROGRAM, WORLD};
use crate::keeper::run_plan::RunPlan;
use crate::keeper::socket::client::Order;
use crate::system::resource_exhaustion::is_resource_exhaustion;

/// Delay before a failed keeper start is reported.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(1);

/// A side effect that waits for the commit.
pub(crate) enum Effect {
    /// Start the keeper of a run, and supervise it.
    StartKeeper(Box<RunPlan>, PathBuf),
    /// Supervise the keeper of a run that was started earlier.
    Supervise(u64, PathBuf),
    /// Write a file for members.
    WriteFile(PathBuf, String),
    /// Send an order to a keeper.
    SendOrder(UnboundedSender<Order>, Order),
    /// Answer a request.
    Reply(Box<dyn FnOnce() + Send>),
    /// Delete the output of a gang's members.
    RemoveDirectory(PathBuf),
}

impl Daemon {
    pub(crate) fn run_effects(&mut self) {
        for effect in std::mem::take(&mut self.effects) {
            match effect {
                Effect::StartKeeper(plan, directory) => {
                    let _inside = self.runtime.enter();
                    match launch(&plan, &directory, &self.environment) {
                        Ok(keeper) => self.supervise_keeper(plan.run, directory, Some(keeper)),
                        Err(error) => {
                            tracing::error!(gang = &*plan.gang, %error, "no keeper could be started");
                            self.report_failed_start(plan.run, &error);
                        }
                    }
                }
                Effect::Supervise(run, directory) => self.supervise_keeper(run, directory, None),
                Effect::WriteFile(file, text) => {
                    // Written to a temporary file and renamed, so that it is never half written.
                    let part = file.with_extension("part");
                    let written = std::fs::write(&part, text);
                    if let Err(error) = written.and_then(|()| std::fs::rename(&part, &file)) {
                        tracing::warn!(file = %file.display(), %error, "cannot be written");
                    }
                }
                Effect::SendOrder(to, order) => drop(to.send(order)),
                Effect::Reply(reply) => reply(),
                Effect::RemoveDirectory(directory) => {
                    self.runtime.spawn(async move {
                        let _ = tokio::fs::remove_dir_all(directory).await;
                    });
                }
            }
        }
    }

    /// A keeper that could not be started counts as gone, after a delay in which resources may become available.
    fn report_failed_start(&self, run: u64, error: &std::io::Error) {
        let (why, later) = (Some(error.to_string()), is_resource_exhaustion(error));
        let inputs = self.inputs.clone();
        self.runtime.spawn(async move {
            tokio::time::sleep(AGAIN).await;
            let _ = inputs.send(Input::KeeperGone { run, alive_until: 0, why, later });
        });
    }

    fn supervise_keeper(&mut self, run: u64, directory: PathBuf, keeper: Option<KeeperProcess>) {
        let (orders, heard) = unbounded_channel();
        let of = SupervisedRun { run, directory, group: self.trees.run(&self.owner, run) };
        let task = self.runtime.spawn(supervise(of, keeper, heard, self.inputs.clone()));
        self.supervisors.retain(|task| !task.is_finished());
        self.supervisors.push(task.abort_handle());
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

    /// The directory of a run.
    pub(crate) fn run_directory(&self, run: u64) -> PathBuf {
        self.directory.join("runs").join(run.to_string())
    }
}

/// Starts a keeper, which outlives this process. The returned handle completes when the keeper exits.
fn launch(
    plan: &RunPlan,
    directory: &std::path::Path,
    environment: &[(OsString, OsString)],
) -> std::io::Result<KeeperProcess> {
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
    Ok(KeeperProcess { pid, done })
}
