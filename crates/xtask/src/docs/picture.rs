//! stub
use std::path::Path;
pub(super) fn write(_: &Path) -> anyhow::Result<()> { Ok(()) }
