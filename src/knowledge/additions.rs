//! What an administrator adds to the tables, as the text of a file:
//!
//! ```toml
//! [[toolkit]]                 # a release of the CUDA toolkit
//! cuda = "14.0.0"
//! driver = "650.41.03"
//!
//! [[branch]]                  # a branch of the driver, and the CUDA it offers
//! number = 650
//! cuda = "14.0"
//!
//! [[major]]                   # a major version of CUDA, and the first driver its runtimes start on
//! number = 14
//! driver = "650.41.03"
//!
//! [[compat]]                  # a package for forward compatibility: its driver, the branches it works with
//! cuda = "14.0.0"
//! driver = "650.41.03"
//! branches = [580, 610, 620]
//! ```
//!
//! A row with the key of one that is there replaces it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::model::Release;
use crate::model::knowledge::{Branch, CompatBranches, CompatPackage, Knowledge, Major, Toolkit};

/// No table grows beyond that: the hook reads them before a container starts.
const MOST: usize = 1000;

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

/// Lays the rows of a file over the tables. What is odd is said, one line each, and the rest counts; a row that
/// breaks a table's order (a newer branch with an older CUDA) does not. A text that is not TOML does not count at
/// all.
pub fn lay_over(knowledge: &mut Knowledge, text: &str) -> Vec<String> {
    let file: toml::Table = match toml::from_str(text) {
        Ok(file) => file,
        Err(error) => return vec![format!("the file does not count: {}", error.message().replace('\n', " "))],
    };
    let mut odd = Vec::new();
    for (key, value) in file {
        let toml::Value::Array(rows) = value else {
            odd.push(if TABLES.contains(&key.as_str()) {
                format!("{key}: a row is written [[{key}]]")
            } else {
                format!("{key}: no such table")
            });
            continue;
        };
        for (place, row) in rows.into_iter().enumerate() {
            let laid = match key.as_str() {
                "toolkit" => of_toolkit(knowledge, row),
                "branch" => of_branch(knowledge, row),
                "major" => of_major(knowledge, row),
                "compat" => of_compat(knowledge, row),
                _ => {
                    odd.push(format!("{key}: no such table"));
                    break;
                }
            };
            let name = format!("[[{key}]] {}", place + 1);
            match laid {
                Ok(rest) => odd.extend(rest.keys().map(|unknown| format!("{name}: {unknown}: no such key"))),
                Err(reason) => odd.push(format!("{name} does not count: {reason}")),
            }
        }
    }
    odd
}

const TABLES: [&str; 4] = ["toolkit", "branch", "major", "compat"];

/// The keys of a row that nobody knows, or why it does not count.
type Laid = Result<BTreeMap<String, toml::Value>, String>;

fn of_toolkit(knowledge: &mut Knowledge, row: toml::Value) -> Laid {
    let OfToolkit { cuda, driver, rest } = read(row)?;
    let row = Toolkit { cuda: text(&cuda), driver: text(&driver) };
    let say = |row: &Toolkit| format!("toolkit {} with driver {}", row.cuda, row.driver);
    lay(&mut knowledge.toolkits, row, |row| number(&row.cuda), |row| number(&row.driver), say)?;
    Ok(rest)
}

fn of_branch(knowledge: &mut Knowledge, row: toml::Value) -> Laid {
    let OfBranch { number, cuda, rest } = read(row)?;
    let row = Branch { number, cuda: (cuda.number(0), cuda.number(1)) };
    let say = |row: &Branch| format!("branch {} with CUDA {}.{}", row.number, row.cuda.0, row.cuda.1);
    lay(&mut knowledge.branches, row, |row| row.number, |row| row.cuda, say)?;
    Ok(rest)
}

fn of_major(knowledge: &mut Knowledge, row: toml::Value) -> Laid {
    let OfMajor { number: major, driver, rest } = read(row)?;
    if major < FIRST_MAJOR {
        return Err(format!("minor-version compatibility began with CUDA {FIRST_MAJOR}"));
    }
    let row = Major { number: major, driver: text(&driver) };
    let say = |row: &Major| format!("CUDA {} with driver {}", row.number, row.driver);
    lay(&mut knowledge.majors, row, |row| row.number, |row| number(&row.driver), say)?;
    Ok(rest)
}

fn of_compat(knowledge: &mut Knowledge, row: toml::Value) -> Laid {
    let OfCompat { cuda, driver, mut branches, rest } = read(row)?;
    if driver.is_none() && branches.is_empty() {
        return Err("it has neither driver nor branches".to_owned());
    }
    if let Some(driver) = driver {
        let row = CompatPackage { cuda: text(&cuda), driver: text(&driver) };
        let say = |row: &CompatPackage| format!("the package of CUDA {} with driver {}", row.cuda, row.driver);
        lay(&mut knowledge.compat_packages, row, |row| number(&row.cuda), |row| number(&row.driver), say)?;
    }
    if !branches.is_empty() {
        branches.sort_unstable();
        branches.dedup();
        let row = CompatBranches { cuda: (cuda.number(0), cuda.number(1)), branches: Cow::Owned(branches) };
        let say = |row: &CompatBranches| format!("the branches of CUDA {}.{}", row.cuda.0, row.cuda.1);
        lay(&mut knowledge.compat_branches, row, |row| row.cuda, |_| (), say)?;
    }
    Ok(rest)
}

fn read<T: DeserializeOwned>(row: toml::Value) -> Result<T, String> {
    row.try_into().map_err(|error: toml::de::Error| error.message().replace('\n', " "))
}

/// Puts a row where its key belongs, in place of one with the same key, if its value rises with the key as the
/// others' do.
fn lay<T: Clone, K: Ord, V: Ord>(
    table: &mut Cow<'static, [T]>,
    row: T,
    key: impl Fn(&T) -> K,
    value: impl Fn(&T) -> V,
    say: impl Fn(&T) -> String,
) -> Result<(), String> {
    let at = table.partition_point(|other| key(other) < key(&row));
    let replaces = table.get(at).is_some_and(|other| key(other) == key(&row));
    let before = at.checked_sub(1).and_then(|at| table.get(at)).filter(|other| value(other) > value(&row));
    let after = table.get(at + usize::from(replaces)).filter(|other| value(other) < value(&row));
    if let Some(other) = before.or(after) {
        return Err(format!("{} is out of order beside {}", say(&row), say(other)));
    }
    if !replaces && table.len() >= MOST {
        return Err(format!("the table has {MOST} rows"));
    }
    let rows = table.to_mut();
    if replaces {
        rows[at] = row;
    } else {
        rows.insert(at, row);
    }
    Ok(())
}

fn number(text: &str) -> Option<Release> {
    text.parse().ok()
}

fn text(release: &Release) -> Cow<'static, str> {
    Cow::Owned(release.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::BUILT_IN;
    use proptest::prelude::*;

    fn v(text: &str) -> Release {
        text.parse().unwrap()
    }

    fn laid(text: &str) -> (Knowledge, Vec<String>) {
        let mut knowledge = BUILT_IN;
        let odd = lay_over(&mut knowledge, text);
        (knowledge, odd)
    }

    #[test]
    fn rows_are_added_where_they_belong() {
        let (knowledge, odd) = laid(
            r#"
            [[toolkit]]
            cuda = "14.0.0"
            driver = "650.41.03"
            [[branch]]
            number = 650
            cuda = "14.0"
            [[major]]
            number = 14
            driver = "650.41.03"
            [[compat]]
            cuda = "14.0.0"
            driver = "650.41.03"
            branches = [620, 580, 580]
            [[compat]]
            cuda = "13.5"
            branches = [580]
            "#,
        );
        assert!(odd.is_empty(), "{odd:?}");
        assert_eq!(knowledge.offered_by(&v("650.99")).map(|a| (a.value, a.by_rule)), Some((v("14.0"), false)));
        assert_eq!(knowledge.smallest_driver(&v("14.2")).map(|a| (a.value, a.by_rule)), Some((v("650.41.03"), false)));
        assert_eq!(knowledge.full_driver(&v("14.0")).map(|a| a.value), Some(v("650.41.03")));
        assert_eq!(knowledge.compat_package(&v("14.0")), Some(v("650.41.03")));
        assert_eq!(knowledge.compat_branches(&v("14.0")), Some(&[580, 620][..]));
        assert_eq!(knowledge.compat_branches(&v("13.5")), Some(&[580][..]));
        assert!(knowledge.branches.is_sorted_by_key(|branch| branch.number));
    }

    #[test]
    fn a_row_with_a_known_key_replaces() {
        let (knowledge, odd) = laid("[[toolkit]]\ncuda = \"12.8.0\"\ndriver = \"570.26\"\n");
        assert!(odd.is_empty(), "{odd:?}");
        assert_eq!(knowledge.toolkits.len(), BUILT_IN.toolkits.len());
        assert_eq!(knowledge.full_driver(&v("12.8.0")).map(|a| a.value), Some(v("570.26")));
    }

    #[test]
    fn what_breaks_the_order_does_not_count() {
        for (row, beside) in [
            ("[[branch]]\nnumber = 650\ncuda = \"12.0\"", "branch 620"),
            ("[[branch]]\nnumber = 536\ncuda = \"14.0\"", "branch 545"),
            ("[[toolkit]]\ncuda = \"14.0.0\"\ndriver = \"550.1\"", "toolkit 13"),
            ("[[major]]\nnumber = 14\ndriver = \"550.1\"", "CUDA 13"),
            ("[[compat]]\ncuda = \"14.0.0\"\ndriver = \"550.1\"", "CUDA 13.5.0"),
        ] {
            let (knowledge, odd) = laid(row);
            assert_eq!(knowledge, BUILT_IN, "{row}");
            assert!(odd.len() == 1 && odd[0].contains(beside), "{odd:?}");
        }
    }

    #[test]
    fn what_is_odd_is_said_and_the_rest_counts() {
        let good = "[[branch]]\nnumber = 650\ncuda = \"14.0\"\n";
        for (slip, said) in [
            ("[[gpu]]\nname = 1", "gpu: no such table"),
            ("[gpu]\nname = 1", "gpu: no such table"),
            ("[toolkit]\ncuda = \"14.0\"", "toolkit: a row is written [[toolkit]]"),
            ("[[toolkit]]\ncuda = \"14.0\"", "[[toolkit]] 1 does not count: missing field `driver`"),
            ("[[toolkit]]\ncuda = \"new\"\ndriver = \"650\"", "\"new\" is not a version"),
            ("[[major]]\nnumber = -1\ndriver = \"650\"", "[[major]] 1 does not count"),
            ("[[major]]\nnumber = 10\ndriver = \"440.33\"", "began with CUDA 11"),
            ("[[compat]]\ncuda = \"14.0\"", "neither driver nor branches"),
        ] {
            let (knowledge, odd) = laid(&format!("{good}{slip}\n"));
            assert!(odd.len() == 1 && odd[0].contains(said) && !odd[0].contains('\n'), "{odd:?}");
            assert_eq!(knowledge.branches.len(), BUILT_IN.branches.len() + 1, "{slip}");
        }
        let (knowledge, odd) = laid("[[branch]]\nnumber = 650\ncuda = \"14.0\"\ncolour = 1\n");
        assert_eq!(odd, ["[[branch]] 1: colour: no such key"]);
        assert_eq!(knowledge.branches.len(), BUILT_IN.branches.len() + 1);
        let (knowledge, odd) = laid(&format!("{good}[[branch]\n"));
        assert!(odd.len() == 1 && odd[0].starts_with("the file does not count"), "{odd:?}");
        assert_eq!(knowledge, BUILT_IN);
    }

    #[test]
    fn tables_have_an_end() {
        use std::fmt::Write as _;
        let mut text = String::new();
        for number in 0..2000 {
            writeln!(text, "[[branch]]\nnumber = {}\ncuda = \"14.0\"", 1000 + number).unwrap();
        }
        let (knowledge, odd) = laid(&text);
        assert_eq!(knowledge.branches.len(), MOST);
        assert!(odd.iter().all(|line| line.contains("rows")));
    }

    proptest! {
        #[test]
        fn any_rows_leave_the_tables_in_order(rows in proptest::collection::vec((300u32..700, 8u32..16, 0u32..10), 0..20)) {
            use std::fmt::Write as _;
            let mut text = String::new();
            for (number, major, minor) in rows {
                writeln!(text, "[[branch]]\nnumber = {number}\ncuda = \"{major}.{minor}\"").unwrap();
                writeln!(text, "[[toolkit]]\ncuda = \"{major}.{minor}.1\"\ndriver = \"{number}.10\"").unwrap();
            }
            let (knowledge, _) = laid(&text);
            for pair in knowledge.branches.windows(2) {
                prop_assert!(pair[0].number < pair[1].number && pair[0].cuda <= pair[1].cuda, "{:?}", pair);
            }
            for pair in knowledge.toolkits.windows(2) {
                prop_assert!(v(&pair[0].cuda) < v(&pair[1].cuda) && v(&pair[0].driver) <= v(&pair[1].driver), "{:?}", pair);
            }
        }

        #[test]
        fn nothing_panics(text in "(?s).{0,200}") {
            let _ = laid(&text);
        }
    }
}
