//! The version of Kubernetes, and the feature gates and API versions of native gangs in it.

use std::fmt;
use std::path::Path;
use std::process::Command;

/// Kubernetes 1.`minor`.`patch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    /// From the output of `kube-apiserver --version`: `Kubernetes v1.37.1`.
    pub(crate) fn of(api_server: &Path) -> Option<Self> {
        let output = Command::new(api_server).arg("--version").output().ok()?;
        Self::read(std::str::from_utf8(&output.stdout).ok()?)
    }

    fn read(text: &str) -> Option<Self> {
        let numbers = text.trim().strip_prefix("Kubernetes v1.")?;
        let mut numbers = numbers.split(['.', '-', '+']).map(str::parse);
        Some(Self { minor: numbers.next()?.ok()?, patch: numbers.next()?.ok()? })
    }

    /// Feature gates of the native PodGroup. An unknown one would keep the server from starting.
    pub(crate) fn gates(self) -> &'static [&'static str] {
        match self.minor {
            ..=34 => &[],
            35 | 36 => &["GenericWorkload", "GangScheduling"],
            37.. => &["GenericWorkload"],
        }
    }

    /// Kinds of admission policies that it serves. helm needs them where it is not connected.
    pub fn admission_policies(self) -> &'static [&'static str] {
        const KINDS: [&str; 2] = [
            "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
            "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy",
        ];
        match self.minor {
            ..=29 => &[],
            30..=35 => &KINDS[..1],
            36.. => &KINDS,
        }
    }

    /// Versions of `scheduling.k8s.io` that hold it; each release has dropped the earlier ones.
    pub fn gang_apis(self) -> &'static [&'static str] {
        match self.minor {
            ..=34 => &[],
            35 => &["v1alpha1"],
            36 => &["v1alpha2"],
            37.. => &["v1alpha3", "v1beta1"],
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v1.{}.{}", self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_releases_and_prereleases_are_parsed() {
        assert_eq!(Version::read("Kubernetes v1.37.1\n"), Some(Version { minor: 37, patch: 1 }));
        let between = Version::read("Kubernetes v1.38.0-alpha.2+abc");
        assert_eq!(between, Some(Version { minor: 38, patch: 0 }));
        assert_eq!(Version::read("etcd 3"), None);
    }
}
