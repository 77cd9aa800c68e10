//! Signs that explain a CUDA that does not start.

use super::look::short;
use crate::collect::tree::Tree;
use crate::model::host::UvmSigns;

/// How often the machine has slept and woken since boot (Linux 5.4, `Documentation/ABI/testing/sysfs-power`).
const SLEPT: &str = "/sys/power/suspend_stats/success";
/// A switch that only a kernel and module with HMM have.
const HMM: &str = "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm";

/// What the kernel shows of both.
pub(super) fn signs(tree: &Tree) -> UvmSigns {
    let text = |path| short(tree, path).ok().flatten();
    UvmSigns {
        slept: text(SLEPT).and_then(|count| count.parse::<u64>().ok()).map(|count| count > 0),
        hmm_disabled: text(HMM).and_then(|value| match value.as_str() {
            "Y" | "1" => Some(true),
            "N" | "0" => Some(false),
            _ => None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;

    #[test]
    fn what_the_kernel_shows_is_known_and_nothing_else() {
        assert_eq!(signs(&Laid::out(&[]).tree()), UvmSigns::default());
        let laid = Laid::out(&[(SLEPT, "0\n"), (HMM, "N\n")]);
        assert_eq!(signs(&laid.tree()), UvmSigns { slept: Some(false), hmm_disabled: Some(false) });
        laid.write(SLEPT, "3\n");
        laid.write(HMM, "Y\n");
        assert_eq!(signs(&laid.tree()), UvmSigns { slept: Some(true), hmm_disabled: Some(true) });
        laid.write(HMM, "perhaps");
        assert_eq!(signs(&laid.tree()).hmm_disabled, None);
    }
}
