//! The packages of forward compatibility.

use std::borrow::Cow;

use crate::model::knowledge::{CompatBranches, CompatPackage, Knowledge};
use crate::model::{CudaVersion, DriverVersion, Release};

const fn package(cuda: &'static str, driver: &'static str) -> CompatPackage {
    CompatPackage { cuda: Cow::Borrowed(cuda), driver: Cow::Borrowed(driver) }
}

const fn branches(major: u32, minor: u32, branches: &'static [u32]) -> CompatBranches {
    CompatBranches { cuda: (major, minor), branches: Cow::Borrowed(branches) }
}

/// `cuda-compat-X-Y`: conda-forge's cuda-compat-feedstock (2026-03), agreeing with NVIDIA's packages where seen;
/// 13.4 by NGC's image 26.08, 13.5 by the redistributables' index (2026-11).
pub(crate) const PACKAGES: &[CompatPackage] = &[
    package("12.0.0", "525.60.13"),
    package("12.1.1", "530.30.02"),
    package("12.2.2", "535.104.05"),
    package("12.3.2", "545.23.08"),
    package("12.4.0", "550.54.14"),
    package("12.4.1", "550.54.15"),
    package("12.5.0", "555.42.02"),
    package("12.5.1", "555.42.06"),
    package("12.6.0", "560.28.03"),
    package("12.6.1", "560.35.03"),
    package("12.6.2", "560.35.03"),
    package("12.6.3", "560.35.05"),
    package("12.8.0", "570.86.10"),
    package("12.8.1", "570.124.06"),
    package("12.9.0", "575.51.03"),
    package("12.9.1", "575.57.08"),
    package("13.0.0", "580.65.06"),
    package("13.0.1", "580.82.07"),
    package("13.0.2", "580.95.05"),
    package("13.1.0", "590.44.01"),
    package("13.1.1", "590.48.01"),
    package("13.2.0", "595.45.04"),
    package("13.3.0", "610.43.02"),
    package("13.4.0", "615.65.02"),
    package("13.5.0", "620.70.06"),
];

/// The union of what the notes of libcuda 575.57.08 and 590.44.01, `NVIDIA_REQUIRE_CUDA` of all revisions of
/// NVIDIA's images (repository up to 2025-08, third-party copies from 13.1 on) and conda-forge's recipe (2026-03)
/// list. Later revisions of an image drop branches that went out of support, which is policy, not technology.
/// NVIDIA's own table could not be read: a branch that is not here may work all the same.
pub(crate) const BRANCHES: &[CompatBranches] = &[
    branches(10, 0, &[384, 410]),
    branches(10, 1, &[384, 396, 410, 418]),
    branches(10, 2, &[384, 396, 410, 418, 440]),
    branches(11, 1, &[418, 440, 450]),
    branches(11, 2, &[418, 440, 450]),
    branches(11, 3, &[418, 440, 450]),
    branches(11, 4, &[418, 440, 450, 460]),
    branches(11, 5, &[418, 440, 450, 460, 470]),
    branches(11, 6, &[418, 440, 450, 460, 470]),
    branches(11, 7, &[450, 470, 510]),
    branches(11, 8, &[450, 470, 510, 515]),
    branches(12, 0, &[450, 470, 510, 515, 520]),
    branches(12, 1, &[450, 470, 510, 515, 525]),
    branches(12, 2, &[470, 525]),
    branches(12, 3, &[470, 525, 535]),
    branches(12, 4, &[470, 525, 535]),
    branches(12, 5, &[470, 535, 550]),
    branches(12, 6, &[470, 535, 550]),
    branches(12, 8, &[470, 535, 550, 560, 565]),
    branches(12, 9, &[535, 550, 560, 565, 570, 575]),
    branches(13, 0, &[535, 550, 565, 570, 575]),
    branches(13, 1, &[535, 550, 570, 575, 580, 590]),
    branches(13, 2, &[535, 550, 570, 580, 590]),
    branches(13, 3, &[535, 550, 560, 565, 580]),
];

impl Knowledge {
    /// The CUDA that a libcuda for forward compatibility offers, by the driver it is of; `None`: older than the
    /// tables, or newer, where only its note could say it.
    pub fn offered_by_compat(&self, driver: &DriverVersion) -> Option<CudaVersion> {
        let package =
            self.compat_packages.iter().find(|package| package.driver.parse().is_ok_and(|d: Release| d == *driver));
        match package {
            Some(package) => {
                package.cuda.parse::<Release>().ok().map(|cuda| Release::of(&[cuda.number(0), cuda.number(1)]))
            }
            None => self.offered_by(driver).filter(|answer| !answer.by_rule).map(|answer| answer.value),
        }
    }

    /// The package of a CUDA: the driver whose libcuda it has, of the newest release. `None`: not known.
    pub fn compat_package(&self, cuda: &CudaVersion) -> Option<DriverVersion> {
        let of = |package: &CompatPackage| package.cuda.parse::<Release>().ok();
        let same = |package: &&CompatPackage| {
            of(package).is_some_and(|p| (p.number(0), p.number(1)) == (cuda.number(0), cuda.number(1)))
        };
        self.compat_packages.iter().filter(same).max_by_key(|package| of(package))?.driver.parse().ok()
    }

    /// Branches of the host's driver that the package of a CUDA is known to work with, where it has no note;
    /// `None`: nothing is known of this CUDA.
    pub fn compat_branches(&self, cuda: &CudaVersion) -> Option<&[u32]> {
        let wanted = (cuda.number(0), cuda.number(1));
        self.compat_branches.iter().find(|entry| entry.cuda == wanted).map(|entry| &*entry.branches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::BUILT_IN;

    fn v(text: &str) -> Release {
        text.parse().unwrap()
    }

    #[test]
    fn the_tables_are_in_order_and_rise_together() {
        for pair in PACKAGES.windows(2) {
            assert!(v(&pair[0].cuda) < v(&pair[1].cuda) && v(&pair[0].driver) <= v(&pair[1].driver), "{pair:?}");
        }
        for pair in BRANCHES.windows(2) {
            assert!(pair[0].cuda < pair[1].cuda, "{pair:?}");
            assert!(pair[0].branches.first() <= pair[1].branches.first(), "{pair:?}");
        }
        for entry in BRANCHES {
            assert!(entry.branches.is_sorted() && !entry.branches.is_empty(), "{entry:?}");
            // A package is for drivers that offer less, or for its own branch.
            for branch in entry.branches.iter() {
                let offered = BUILT_IN.offered_by(&Release::of(&[*branch])).unwrap().value;
                assert!((offered.number(0), offered.number(1)) <= entry.cuda, "{entry:?} {branch}");
            }
        }
        for package in PACKAGES {
            let (cuda, offered) = (v(&package.cuda), BUILT_IN.offered_by(&v(&package.driver)).unwrap().value);
            assert_eq!((cuda.number(0), cuda.number(1)), (offered.number(0), offered.number(1)), "{package:?}");
        }
    }

    #[test]
    fn packages_are_found_by_cuda_and_by_driver() {
        assert_eq!(BUILT_IN.compat_package(&v("12.6")), Some(v("560.35.05")));
        assert_eq!(BUILT_IN.compat_package(&v("14.0")), None);
        assert_eq!(BUILT_IN.offered_by_compat(&v("575.57.08")), Some(v("12.9")));
        assert_eq!(BUILT_IN.offered_by_compat(&v("465.19.01")), Some(v("11.3")));
        assert_eq!(BUILT_IN.offered_by_compat(&v("650.10")), None);
        assert_eq!(BUILT_IN.compat_branches(&v("12.8.1")), Some(&[470, 535, 550, 560, 565][..]));
        assert_eq!(BUILT_IN.compat_branches(&v("13.5")), None);
    }
}
