//! Which CUDA a driver can run.
//!
//! Two things are easily taken for one. A runtime of CUDA 11 or newer *starts* on every driver that offers its
//! major version (minor-version compatibility): libcudart compares `cuDriverGetVersion` with `major * 1000` and
//! says error 35 below it (read in the machine code of 33 releases from 11.7 to 13.5, 2026-11). The driver that
//! a toolkit was *released with* is only needed for all of its features. Before 11 both are the same.

use std::borrow::Cow;

use crate::model::knowledge::{Knowledge, Major, Toolkit};
use crate::model::{CudaVersion, DriverVersion, Release};

mod branches;
pub mod codes;
#[cfg(feature = "cli")]
mod libraries;
mod toolkits;

pub(crate) use branches::BRANCHES;
#[cfg(feature = "cli")]
pub use libraries::is_of_cuda;
pub(crate) use toolkits::TOOLKITS;

/// NVIDIA, "CUDA Compatibility", table of minor-version compatibility (read 2026-11).
pub(crate) const MAJORS: &[Major] = &[
    Major { number: 11, driver: Cow::Borrowed("450.80.02") },
    Major { number: 12, driver: Cow::Borrowed("525.60.13") },
    Major { number: 13, driver: Cow::Borrowed("580.65.06") },
];

/// The numbers of one branch: 550 is of Linux, 551 to 553 of Windows (NVIDIA's driver archives, 2026-11).
const BRANCH_SPAN: u32 = 10;

/// An answer, and whether the tables know it or a rule goes beyond them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer<T> {
    /// The answer.
    pub value: T,
    /// What was asked is newer than the tables: the answer is the least that must hold.
    pub by_rule: bool,
}

impl<T> Answer<T> {
    pub(in crate::knowledge) fn known(value: T) -> Self {
        Self { value, by_rule: false }
    }

    pub(in crate::knowledge) fn by_rule(value: T) -> Self {
        Self { value, by_rule: true }
    }
}

/// Whether a runtime starts on a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The driver offers all that the runtime's release needs.
    Fully,
    /// Same major, newer minor: it starts, without what only newer drivers have.
    ByMinorVersion,
    /// It does not: error 35.
    No,
}

impl Knowledge {
    /// The CUDA that a driver offers; `None`: older than the tables. Of a driver newer than them at least the
    /// newest they know.
    pub fn offered_by(&self, driver: &DriverVersion) -> Option<Answer<CudaVersion>> {
        let number = driver.number(0);
        let branch = self.branches.iter().filter(|branch| branch.number <= number).max_by_key(|b| b.number)?;
        let newest = self.branches.iter().map(|b| b.number).max().unwrap_or_default();
        let cuda = version(branch.cuda);
        // Windows' drivers have numbers a few above their branch's; what is further off is of one nobody told of.
        let known = number <= newest && number - branch.number < BRANCH_SPAN;
        Some(if known { Answer::known(cuda) } else { Answer::by_rule(cuda) })
    }

    /// The smallest driver on which a runtime of this CUDA starts.
    pub fn smallest_driver(&self, cuda: &CudaVersion) -> Option<Answer<DriverVersion>> {
        let major = cuda.number(0);
        if let Some(entry) = self.majors.iter().find(|entry| entry.number == major) {
            return Some(Answer::known(entry.driver.parse().ok()?));
        }
        let newest = self.majors.iter().max_by_key(|entry| entry.number)?;
        if major > newest.number {
            // A major nobody knew of needs a driver newer than any that is known.
            let all = self.toolkits.iter().filter_map(|toolkit| toolkit.driver.parse::<DriverVersion>().ok());
            return all.max().map(Answer::by_rule);
        }
        self.full_driver(cuda)
    }

    /// The driver that a toolkit was released with: with it nothing of its release is out of reach. Of a
    /// version without its last number the first release counts.
    pub fn full_driver(&self, cuda: &CudaVersion) -> Option<Answer<DriverVersion>> {
        let wanted = (cuda.number(0), cuda.number(1));
        let of = |toolkit: &Toolkit| toolkit.cuda.parse::<Release>().ok();
        let same = |toolkit: &&Toolkit| of(toolkit).is_some_and(|t| (t.number(0), t.number(1)) == wanted);
        let releases = || self.toolkits.iter().filter(same);
        let exact = releases().find(|toolkit| of(toolkit).is_some_and(|t| t == *cuda));
        if let Some(toolkit) = exact.or_else(|| releases().next()) {
            return Some(Answer::known(toolkit.driver.parse().ok()?));
        }
        let newest = self.branches.iter().max_by_key(|b| b.number)?;
        if wanted > newest.cuda {
            let newest = self.toolkits.iter().max_by_key(|t| of(t))?;
            return Some(Answer::by_rule(newest.driver.parse().ok()?));
        }
        // Between two releases (12.7, which no toolkit has): the first branch that offers it.
        let branch = self.branches.iter().filter(|b| b.cuda >= wanted).min_by_key(|b| b.number)?;
        Some(Answer::known(branch.number.to_string().parse().ok()?))
    }

    /// Whether a runtime starts on a driver that offers `offered`; `cuda` may be a major version alone.
    pub fn starts(&self, cuda: &CudaVersion, offered: &CudaVersion) -> Start {
        let (wanted, has) = (cuda.number(0), offered.number(0));
        let minor = (wanted, cuda.number(1)) <= (has, offered.number(1));
        let by_minor = self.majors.iter().map(|m| m.number).min().is_some_and(|first| wanted >= first);
        match (wanted.cmp(&has), minor) {
            (std::cmp::Ordering::Less, _) | (std::cmp::Ordering::Equal, true) => Start::Fully,
            (std::cmp::Ordering::Equal, false) if by_minor => Start::ByMinorVersion,
            _ => Start::No,
        }
    }
}

/// The text can be a release of CUDA: `128` is none, though people write the digits of a wheel's name (cu128)
/// where a version belongs.
pub fn is_release(version: &CudaVersion) -> bool {
    (2..100).contains(&version.number(0)) && version.number(1) < 100
}

fn version((major, minor): (u32, u32)) -> CudaVersion {
    Release::of(&[major, minor])
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
        let toolkits: Vec<(Release, Release)> = TOOLKITS.iter().map(|t| (v(&t.cuda), v(&t.driver))).collect();
        for pair in toolkits.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{pair:?}");
            assert!(pair[0].1 <= pair[1].1, "{pair:?}");
        }
        for pair in BRANCHES.windows(2) {
            assert!(pair[0].number < pair[1].number && pair[0].cuda <= pair[1].cuda, "{pair:?}");
        }
        // A toolkit's driver offers that toolkit.
        for (cuda, driver) in &toolkits {
            let offered = BUILT_IN.offered_by(driver).unwrap();
            assert!((offered.value.number(0), offered.value.number(1)) >= (cuda.number(0), cuda.number(1)), "{cuda}");
            assert!(!offered.by_rule);
        }
        for major in MAJORS {
            let offered = BUILT_IN.offered_by(&v(&major.driver)).unwrap().value;
            assert_eq!((offered.number(0), offered.number(1)), (major.number, 0), "{major:?}");
        }
    }

    #[test]
    fn a_driver_offers_its_branchs_cuda() {
        let offered = |driver: &str| BUILT_IN.offered_by(&v(driver)).map(|a| (a.value.to_string(), a.by_rule));
        assert_eq!(offered("535.183.01"), Some(("12.2".into(), false)));
        assert_eq!(offered("551.78"), Some(("12.4".into(), false)), "a Windows driver between two branches");
        assert_eq!(offered("620.70.06"), Some(("13.5".into(), false)));
        assert_eq!(offered("655.10"), Some(("13.5".into(), true)));
        assert_eq!(offered("602.10"), Some(("13.2".into(), false)));
        let mut added = BUILT_IN;
        added.branches.to_mut().push(crate::model::knowledge::Branch { number: 700, cuda: (14, 0) });
        assert!(added.offered_by(&v("650.10")).is_some_and(|answer| answer.by_rule), "between two that are far apart");
        assert_eq!(offered("340.108"), None);
    }

    #[test]
    fn the_smallest_driver_is_the_majors_from_11_on() {
        let smallest = |cuda: &str| BUILT_IN.smallest_driver(&v(cuda)).map(|a| (a.value.to_string(), a.by_rule));
        assert_eq!(smallest("12.8"), Some(("525.60.13".into(), false)));
        assert_eq!(smallest("13"), Some(("580.65.06".into(), false)));
        assert_eq!(smallest("10.2"), Some(("440.33".into(), false)));
        assert_eq!(smallest("14.1"), Some(("620.70.06".into(), true)));
        let full = |cuda: &str| BUILT_IN.full_driver(&v(cuda)).map(|a| (a.value.to_string(), a.by_rule));
        assert_eq!(full("12.8"), Some(("570.86.10".into(), false)));
        assert_eq!(full("12.8.1"), Some(("570.124.06".into(), false)));
        assert_eq!(full("12.8.90"), Some(("570.86.10".into(), false)), "libcudart's own number");
        assert_eq!(full("12.7"), Some(("565".into(), false)));
        assert_eq!(full("13.9"), Some(("620.70.06".into(), true)));
    }

    #[test]
    fn a_runtime_starts_on_its_major() {
        let starts = |cuda: &str, offered: &str| BUILT_IN.starts(&v(cuda), &v(offered));
        assert_eq!(starts("12.8", "11.4"), Start::No);
        assert_eq!(starts("12.8", "12.2"), Start::ByMinorVersion);
        assert_eq!(starts("12.8.1", "12.8"), Start::Fully);
        assert_eq!(starts("12", "12.2"), Start::Fully);
        assert_eq!(starts("10.2", "10.1"), Start::No);
        assert_eq!(starts("11.8", "13.5"), Start::Fully);
        assert_eq!(starts("14.0", "13.5"), Start::No);
    }
}
