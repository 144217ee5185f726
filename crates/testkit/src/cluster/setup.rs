//! What a test requests of a cluster.

use crate::cluster::Part;
use crate::cluster::Version;
use crate::testbed::Tool;

/// What a cluster has besides etcd and the API server.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    parts: Vec<Part>,
    tools: Vec<Tool>,
    gates: Vec<&'static str>,
}

impl Setup {
    /// Control plane only.
    pub fn bare() -> Self {
        Self::default()
    }

    pub fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    pub fn with_all(self) -> Self {
        Part::ALL.into_iter().fold(self, Self::with)
    }

    /// A program that does not run all the time and that the test calls.
    pub fn needing(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// One more feature gate, besides those of native gangs.
    pub fn gate(mut self, name: &'static str) -> Self {
        self.gates.push(name);
        self
    }

    pub(crate) fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    pub(crate) fn gates(&self, version: Version) -> Option<String> {
        let all = version.gates().iter().chain(&self.gates).map(|gate| format!("{gate}=true"));
        let all: Vec<String> = all.collect();
        (!all.is_empty()).then(|| format!("--feature-gates={}", all.join(",")))
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = Part> {
        self.parts.iter().copied()
    }

    pub(crate) fn tools(&self) -> impl Iterator<Item = Tool> {
        let plane = [Tool::Etcd, Tool::ApiServer];
        plane.into_iter().chain(self.parts().map(Part::tool)).chain(self.tools.iter().copied())
    }
}
