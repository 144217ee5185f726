//! Charts, by the real helm.

use std::io;
use std::process::Command;

use crate::cluster::Cluster;
use crate::cluster::Role;
use crate::testbed::Tool;

#[derive(Debug, thiserror::Error)]
pub enum HelmError {
    #[error("helm is not built; `cargo xtask testbed` builds it")]
    Missing,
    #[error("helm cannot be started: {0}")]
    System(#[from] io::Error),
    #[error("helm {0}:\n{1}")]
    Refused(String, String),
}

impl Cluster {
    /// The output of helm with these arguments. It is connected to this cluster as its admin, and uses none of the
    /// charts, plugins and settings of the user that runs the test.
    pub fn helm(&self, args: &[&str]) -> Result<String, HelmError> {
        let program = Tool::Helm.path().ok_or(HelmError::Missing)?;
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_helm(name)) {
            command.env_remove(name);
        }
        let home = self.folder().join("helm");
        let output = command
            .args(args)
            .env("HOME", &home)
            .envs(["CACHE", "CONFIG", "DATA"].map(|of| (format!("HELM_{of}_HOME"), &home)))
            .env("KUBECONFIG", self.kubeconfig(Role::Admin))
            .current_dir(self.folder())
            .output()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = [output.stdout, output.stderr].concat();
        Err(HelmError::Refused(args.join(" "), String::from_utf8_lossy(&said).into_owned()))
    }

    /// The objects of a chart as helm renders them for this version of Kubernetes, CRDs included; more arguments, such
    /// as values, are passed on.
    pub fn rendered(&self, release: Release<'_>, more: &[&str]) -> Result<String, HelmError> {
        let Release { name, chart, namespace } = release;
        let version = self.version().to_string();
        let fixed = ["template", name, chart, "--namespace", namespace, "--include-crds"];
        let served = self.version().admission_policies().iter();
        let served: Vec<&str> = served.flat_map(|kind| ["--api-versions", kind]).collect();
        self.helm(&[&fixed, ["--kube-version", &version].as_slice(), &served, more].concat())
    }
}

/// A chart that is installed under a name.
#[derive(Clone, Copy, Debug)]
pub struct Release<'a> {
    pub name: &'a str,
    /// The folder of the chart.
    pub chart: &'a str,
    pub namespace: &'a str,
}

fn is_of_helm(variable: &std::ffi::OsStr) -> bool {
    variable.to_string_lossy().starts_with("HELM_")
}
