//! What is done once it is written down: keepers started and told, questions answered, directories removed.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Command;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::attend::attend;
use super::{Daemon, seats};
use crate::keeper::{Order, RunPlan};

/// Something to do after the commit.
pub(super) enum Deed {
    /// Start the keeper of a run, and attend to it.
    Launch(Box<RunPlan>, PathBuf),
    /// Attend to the keeper of a run that was started before.
    Attend(u64, PathBuf),
    /// Tell a keeper something.
    Tell(UnboundedSender<Order>, Order),
    /// Answer somebody.
    Reply(Box<dyn FnOnce() + Send>),
    /// What a gang's members have printed is not wanted any more.
    Remove(PathBuf),
}

impl Daemon {
    pub(super) fn act(&mut self) {
        for deed in std::mem::take(&mut self.deeds) {
            match deed {
                Deed::Launch(plan, directory) => {
                    let _inside = self.runtime.enter();
                    if let Err(error) = launch(&plan, &directory) {
                        tracing::error!(gang = &*plan.gang, %error, "no keeper could be started");
                    }
                    self.attend_to(plan.run, directory);
                }
                Deed::Attend(run, directory) => self.attend_to(run, directory),
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

    fn attend_to(&mut self, run: u64, directory: PathBuf) {
        let (orders, heard) = unbounded_channel();
        self.runtime.spawn(attend(run, directory, heard, self.inputs.clone()));
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
    pub(super) fn run_directory(&self, run: u64) -> PathBuf {
        self.directory.join("runs").join(run.to_string())
    }
}

/// Starts a keeper, which nobody waits for: it outlives this process.
fn launch(plan: &RunPlan, directory: &std::path::Path) -> std::io::Result<()> {
    plan.write(directory)?;
    std::fs::write(directory.join("hostfile"), seats::hostfile(plan))?;
    let complaints = std::fs::File::create(directory.join("keeper.err"))?;
    let muster = std::env::current_exe()?;
    let mut keeper = Command::new(muster)
        .arg("keep")
        .arg(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(complaints)
        .spawn()?;
    tokio::spawn(async move { keeper.wait().await });
    Ok(())
}
