//! The subcommand of the dynamic program, which asks NVML as well.

use crate::cli::{Common, Format, Healthcheck};
use crate::collect::host::cuda;
use crate::collect::host::nvml::{Library, Source as _};

use super::{Driver, Wish, check};

/// Judges and prints; 0 healthy, 1 not. In text where the format is one that it does not have: a variable that somebody
/// set for another command is no reason to end a container.
pub(crate) fn run(asked: &Healthcheck, common: &Common) -> u8 {
    let wish = Wish {
        open: asked.open,
        cuda: asked.cuda,
        min_free_memory: asked.min_free_memory,
        timeout: asked.timeout,
        host_root: common.host_root.clone(),
        driver_root: common.driver_root.clone(),
        config: common.config.clone(),
        ignore: common.ignore.clone(),
        json: common.format == Format::Json,
        verbose: common.verbose,
    };
    let driver = Driver {
        nvml: &|file, deadline| Library { file: file.as_os_str() }.read(deadline),
        cuda: &|file, deadline| cuda::start(file.as_os_str(), deadline),
    };
    check(&wish, Some(&driver))
}
