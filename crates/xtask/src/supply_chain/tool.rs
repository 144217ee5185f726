//! Third-party programs that are installed from crates.io once into the user's cache, outside the clone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, bail};

/// A program on crates.io, at one version.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// Features beside those that cannot be left out, with commas between them.
    pub(crate) features: &'static str,
}

impl Tool {
    /// The installed program; installs it when the cache does not hold this version.
    pub(crate) fn installed(&self) -> anyhow::Result<PathBuf> {
        let folder = cache()?.join(format!("{}-{}", self.name, self.version));
        let program = folder.join("bin").join(self.name);
        if program.is_file() {
            return Ok(program);
        }
        eprintln!("installing {} {}, once, into {}", self.name, self.version, folder.display());
        self.install(&folder)?;
        Ok(program)
    }

    /// Installs into a folder beside the final one, so that an installation that was cut off is not taken for whole.
    fn install(&self, folder: &Path) -> anyhow::Result<()> {
        let partial = folder.with_extension(format!("partial-{}", std::process::id()));
        let status = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["install", "--quiet", "--locked", "--debug", "--no-default-features"])
            .args(["--features", self.features])
            .arg(format!("{}@{}", self.name, self.version))
            .arg("--root")
            .arg(&partial)
            // The programs run for seconds: compiling them without optimisation and symbols takes a third of the time.
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env_remove("CARGO_TARGET_DIR")
            .status()
            .context("cargo cannot be started")?;
        if !status.success() {
            let _ = fs::remove_dir_all(&partial);
            bail!("`cargo install {}@{}` failed", self.name, self.version);
        }
        // Another process may have been faster; its installation is the same.
        if fs::rename(&partial, folder).is_err() {
            fs::remove_dir_all(&partial)?;
        }
        Ok(())
    }
}

fn cache() -> anyhow::Result<PathBuf> {
    let base = env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let base = base.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    Ok(base.context("neither XDG_CACHE_HOME nor HOME is set")?.join("muster/tools"))
}
