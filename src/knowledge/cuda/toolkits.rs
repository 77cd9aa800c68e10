//! Releases of the CUDA toolkit, and the driver each was made with.
//!
//! NVIDIA, "CUDA Toolkit and Corresponding Driver Versions" in the release notes of CUDA 13.1 (2026-01) and
//! the older tables it cites (7.0 to 7.5); from 12.0 on checked against the names of the runfiles in NVIDIA's
//! archive (`cuda_12.8.1_570.124.06_linux.run`, read 2026-11). `x86_64` and arm64 servers have the same numbers;
//! those of arm64 were compared from 12.0 to 13.3. 12.8.0 stands as shipped (570.86.10; the notes say 570.26).
//! 13.4 and 13.5 carry no driver any more: theirs are the oldest of the branch that were seen to offer them.

use std::borrow::Cow;

use crate::model::knowledge::Toolkit;

const fn toolkit(cuda: &'static str, driver: &'static str) -> Toolkit {
    Toolkit { cuda: Cow::Borrowed(cuda), driver: Cow::Borrowed(driver) }
}

/// Oldest first.
pub(crate) const TOOLKITS: &[Toolkit] = &[
    toolkit("7.0.28", "346.46"),
    toolkit("7.5.16", "352.31"),
    toolkit("8.0.44", "367.48"),
    toolkit("8.0.61", "375.26"),
    toolkit("9.0.76", "384.81"),
    toolkit("9.1.85", "390.46"),
    toolkit("9.2.88", "396.26"),
    toolkit("9.2.148", "396.37"),
    toolkit("10.0.130", "410.48"),
    toolkit("10.1.105", "418.39"),
    toolkit("10.2.89", "440.33"),
    toolkit("11.0.1", "450.36.06"),
    toolkit("11.0.2", "450.51.05"),
    toolkit("11.0.3", "450.51.06"),
    toolkit("11.1.0", "455.23"),
    toolkit("11.1.1", "455.32"),
    toolkit("11.2.0", "460.27.03"),
    toolkit("11.2.1", "460.32.03"),
    toolkit("11.2.2", "460.32.03"),
    toolkit("11.3.0", "465.19.01"),
    toolkit("11.3.1", "465.19.01"),
    toolkit("11.4.0", "470.42.01"),
    toolkit("11.4.1", "470.57.02"),
    toolkit("11.4.2", "470.57.02"),
    toolkit("11.4.3", "470.82.01"),
    toolkit("11.4.4", "470.82.01"),
    toolkit("11.5.0", "495.29.05"),
    toolkit("11.5.1", "495.29.05"),
    toolkit("11.5.2", "495.29.05"),
    toolkit("11.6.0", "510.39.01"),
    toolkit("11.6.1", "510.47.03"),
    toolkit("11.6.2", "510.47.03"),
    toolkit("11.7.0", "515.43.04"),
    toolkit("11.7.1", "515.48.07"),
    toolkit("11.8.0", "520.61.05"),
    toolkit("12.0.0", "525.60.13"),
    toolkit("12.0.1", "525.85.12"),
    toolkit("12.1.0", "530.30.02"),
    toolkit("12.1.1", "530.30.02"),
    toolkit("12.2.0", "535.54.03"),
    toolkit("12.2.1", "535.86.09"),
    toolkit("12.2.2", "535.104.05"),
    toolkit("12.3.0", "545.23.06"),
    toolkit("12.3.1", "545.23.08"),
    toolkit("12.3.2", "545.23.08"),
    toolkit("12.4.0", "550.54.14"),
    toolkit("12.4.1", "550.54.15"),
    toolkit("12.5.0", "555.42.02"),
    toolkit("12.5.1", "555.42.06"),
    toolkit("12.6.0", "560.28.03"),
    toolkit("12.6.1", "560.35.03"),
    toolkit("12.6.2", "560.35.03"),
    toolkit("12.6.3", "560.35.05"),
    toolkit("12.8.0", "570.86.10"),
    toolkit("12.8.1", "570.124.06"),
    toolkit("12.8.2", "570.211.01"),
    toolkit("12.9.0", "575.51.03"),
    toolkit("12.9.1", "575.57.08"),
    toolkit("12.9.2", "575.57.08"),
    toolkit("13.0.0", "580.65.06"),
    toolkit("13.0.1", "580.82.07"),
    toolkit("13.0.2", "580.95.05"),
    toolkit("13.0.3", "580.126.20"),
    toolkit("13.1.0", "590.44.01"),
    toolkit("13.1.1", "590.48.01"),
    toolkit("13.1.2", "590.48.01"),
    toolkit("13.2.0", "595.45.04"),
    toolkit("13.2.1", "595.58.03"),
    toolkit("13.2.2", "595.71.05"),
    toolkit("13.3.0", "610.43.02"),
    toolkit("13.3.1", "610.43.02"),
    toolkit("13.4.1", "615.65.02"),
    toolkit("13.5.0", "620.70.06"),
];
