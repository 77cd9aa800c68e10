//! Rows about CUDA and drivers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Laid, lay, number, pair, read};
use crate::model::Release;
use crate::model::knowledge::{Branch, CompatBranches, CompatPackage, Knowledge, Major, Toolkit};

/// Minor-version compatibility began with it.
const FIRST_MAJOR: u32 = 11;

#[derive(Deserialize)]
struct OfToolkit {
    cuda: Release,
    driver: Release,
    #[serde(flatten)]
    rest: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
struct OfBranch {
    number: u32,
    cuda: Release,
    #[serde(flatten)]
    rest: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
struct OfMajor {
    number: u32,
    driver: Release,
    #[serde(flatten)]
    rest: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
struct OfCompat {
    cuda: Release,
    driver: Option<Release>,
    #[serde(default)]
    branches: Vec<u32>,
    #[serde(flatten)]
    rest: BTreeMap<String, toml::Value>,
}

/// A release of the toolkit.
pub(super) fn toolkit(knowledge: &mut Knowledge, row: toml::Value) -> Laid {
    let OfToolkit { cuda, driver, rest } = read(row)?;
    let row = Toolkit { cuda: text(&cuda), driver: text(&driver) };
    let rises = |a: &Toolkit, b: &Toolkit| number(&a.driver) <= number(&b.driver);
    let say = |row: &Toolkit| format!("toolkit {} with driver {}", row.cuda, row.driver);
    lay(&mut knowledge.toolkits, row, |row| number(&row.cuda), rises, say)?;
    Ok(rest)
}

/// A branch of the driver.
pub(super) fn branch(knowledge: &mut Knowledge, row: toml::Value) -> Laid {
    let OfBranch { number, cuda, rest } = read(row)?;
    let row = Branch { number, cuda: pair(&cuda) };
    let say = |row: &Branch| format!("branch {} with CUDA {}.{}", row.number, row.cuda.0, row.cuda.1);
    lay(&mut knowledge.branches, row, |row| row.number, |a, b| a.cuda <= b.cuda, say)?;
    Ok(rest)
}

/// A major version of CUDA.
pub(super) fn major(knowledge: &mut Knowledge, row: toml::Value) -> Laid {
    let OfMajor { number: major, driver, rest } = read(row)?;
    if major < FIRST_MAJOR {
        return Err(format!("minor-version compatibility began with CUDA {FIRST_MAJOR}"));
    }
    let row = Major { number: major, driver: text(&driver) };
    let rises = |a: &Major, b: &Major| number(&a.driver) <= number(&b.driver);
    let say = |row: &Major| format!("CUDA {} with driver {}", row.number, row.driver);
    lay(&mut knowledge.majors, row, |row| row.number, rises, say)?;
    Ok(rest)
}

/// A package for forward compatibility.
pub(super) fn compat(knowledge: &mut Knowledge, row: toml::Value) -> Laid {
    let OfCompat { cuda, driver, mut branches, rest } = read(row)?;
    if driver.is_none() && branches.is_empty() {
        return Err("it has neither driver nor branches".to_owned());
    }
    if let Some(driver) = driver {
        let row = CompatPackage { cuda: text(&cuda), driver: text(&driver) };
        let rises = |a: &CompatPackage, b: &CompatPackage| number(&a.driver) <= number(&b.driver);
        let say = |row: &CompatPackage| format!("the package of CUDA {} with driver {}", row.cuda, row.driver);
        lay(&mut knowledge.compat_packages, row, |row| number(&row.cuda), rises, say)?;
    }
    if !branches.is_empty() {
        branches.sort_unstable();
        branches.dedup();
        let row = CompatBranches { cuda: pair(&cuda), branches: Cow::Owned(branches) };
        let say = |row: &CompatBranches| format!("the branches of CUDA {}.{}", row.cuda.0, row.cuda.1);
        lay(&mut knowledge.compat_branches, row, |row| row.cuda, |_, _| true, say)?;
    }
    Ok(rest)
}

fn text(release: &Release) -> Cow<'static, str> {
    Cow::Owned(release.as_str().to_owned())
}
