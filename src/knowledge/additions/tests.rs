//! Rows laid over the tables.

use super::*;
use crate::knowledge::BUILT_IN;
use crate::model::ComputeCapability;
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
fn gpus_and_what_toolkits_make_for_them_are_added() {
    let (knowledge, odd) = laid(
        r#"
        [[branch]]
        number = 650
        cuda = "14.0"
        [[generation]]
        name = "Next"
        capabilities = ["14.1", "14.0"]
        first_branch = 650
        modules = "open"
        [[gpu]]
        pci = "0x4000-0x40ff"
        compute_capability = "14.0"
        [[gpu]]
        pci = "0x4010"
        name = "NVIDIA X200"
        compute_capability = "14.1"
        [[gpu]]
        name = "GeForce RTX 7090 Ti"
        compute_capability = "14.1"
        [[target]]
        cuda = "14.0"
        capabilities = ["8.0", "9.0", "14.1", "14.0"]
        [[ptx]]
        cuda = "14.0"
        isa = "10.0"
        "#,
    );
    assert!(odd.is_empty(), "{odd:?}");
    let by_id = |id| knowledge.capability_of(None, Some(id)).map(|c| c.to_string());
    assert_eq!(by_id(0x3fff), None);
    for (id, capability) in [(0x4000, "14.0"), (0x400f, "14.0"), (0x4010, "14.1"), (0x4011, "14.0"), (0x40ff, "14.0")] {
        assert_eq!(by_id(id).as_deref(), Some(capability), "{id:04x}");
    }
    let by_name = |name| knowledge.capability_of(Some(name), None).map(|c| c.to_string());
    assert_eq!(by_name("NVIDIA X200-SXM6-288GB").as_deref(), Some("14.1"));
    assert_eq!(by_name("NVIDIA GeForce RTX 7090 Ti").as_deref(), Some("14.1"));
    assert_eq!(by_name("NVIDIA GeForce RTX 7090"), None);
    let generation = knowledge.generation_of(ComputeCapability::new(14, 1)).map(|a| (a.value.name.clone(), a.by_rule));
    assert_eq!(generation, Some(("Next".into(), false)));
    assert_eq!(knowledge.driver_supports(ComputeCapability::new(14, 0), &v("650.10")), Some(true));
    let targets = knowledge.targets_of(&v("14.0")).map(|a| (a.value.min(), a.value.max(), a.by_rule));
    assert_eq!(targets, Some((Some(ComputeCapability::new(8, 0)), Some(ComputeCapability::new(14, 1)), false)));
    assert_eq!(knowledge.targets_of(&v("14.1")).map(|a| a.by_rule), Some(true));
    assert_eq!(knowledge.ptx_of(&v("14.0")).map(|a| (a.value, a.by_rule)), Some(((10, 0), false)));
    // one table says nothing for another
    let (knowledge, _) = laid("[[ptx]]\ncuda = \"14.0\"\nisa = \"10.0\"");
    assert_eq!(knowledge.targets_of(&v("14.0")).map(|a| a.by_rule), Some(true));
}

#[test]
fn rows_about_known_gpus_replace() {
    let (knowledge, odd) = laid(
        r#"
        [[generation]]
        name = "Turing"
        capabilities = ["7.5"]
        first_branch = 410
        last_branch = 620
        modules = "either"
        [[gpu]]
        pci = "0x22ff-0x2400"
        compute_capability = "8.9"
        [[gpu]]
        name = "A100"
        compute_capability = "8.6"
        [[gpu]]
        name = "NVIDIA A100"
        compute_capability = "8.7"
        [[target]]
        cuda = "13.5"
        capabilities = ["8.0", "12.1"]
        [[ptx]]
        cuda = "13.5"
        isa = "9.6"
        "#,
    );
    assert!(odd.is_empty(), "{odd:?}");
    assert_eq!(knowledge.generations.len(), BUILT_IN.generations.len());
    let (later, _) = laid(
        "[[generation]]\nname = \"Turing\"\ncapabilities = [\"7.5\"]\nfirst_branch = 410\nlast_branch = 610\nmodules = \"either\"",
    );
    assert_eq!(knowledge.driver_supports(ComputeCapability::new(7, 5), &v("620.70.06")), Some(true));
    assert_eq!(knowledge.driver_supports(ComputeCapability::new(7, 5), &v("650.10")), Some(false), "after the last");
    assert_eq!(later.driver_supports(ComputeCapability::new(7, 5), &v("620.70.06")), Some(false));
    let by_id = |id| knowledge.capability_of(None, Some(id)).map(|c| c.to_string());
    for (id, capability) in [(0x22fe, "8.6"), (0x22ff, "8.9"), (0x2330, "8.9"), (0x2400, "8.9"), (0x2401, "8.6")] {
        assert_eq!(by_id(id).as_deref(), Some(capability), "{id:04x}");
    }
    assert!(knowledge.chips.windows(2).all(|pair| pair[0].last < pair[1].first));
    let by_name = |name| knowledge.capability_of(Some(name), None).map(|c| c.to_string());
    assert_eq!(by_name("NVIDIA A100-SXM4-80GB").as_deref(), Some("8.7"));
    assert_eq!(by_name("A800").as_deref(), Some("8.0"), "its row had both");
    assert_eq!(knowledge.products.len(), BUILT_IN.products.len() + 1);
    assert_eq!(knowledge.targets_of(&v("13.5")).and_then(|a| a.value.min()), Some(ComputeCapability::new(8, 0)));
    assert_eq!(knowledge.ptx_of(&v("13.5")).map(|a| a.value), Some((9, 6)));
}

#[test]
fn what_breaks_the_order_does_not_count() {
    for (row, beside) in [
        ("[[branch]]\nnumber = 650\ncuda = \"12.0\"", "branch 620"),
        ("[[branch]]\nnumber = 536\ncuda = \"14.0\"", "branch 545"),
        ("[[toolkit]]\ncuda = \"14.0.0\"\ndriver = \"550.1\"", "toolkit 13"),
        ("[[major]]\nnumber = 14\ndriver = \"550.1\"", "CUDA 13"),
        ("[[compat]]\ncuda = \"14.0.0\"\ndriver = \"550.1\"", "CUDA 13.5.0"),
        ("[[target]]\ncuda = \"14.0\"\ncapabilities = [\"7.0\", \"14.0\"]", "CUDA 13.5 for 7.5 to 12.1"),
        ("[[target]]\ncuda = \"12.4\"\ncapabilities = [\"5.0\", \"14.0\"]", "CUDA 12.8"),
        ("[[ptx]]\ncuda = \"14.0\"\nisa = \"8.0\"", "CUDA 13.5 with PTX 9.5"),
        (
            "[[generation]]\nname = \"Next\"\ncapabilities = [\"14.0\"]\nfirst_branch = 600\nmodules = \"open\"",
            "Next is out of order beside Rubin",
        ),
        (
            "[[generation]]\nname = \"Ada\"\ncapabilities = [\"8.9\"]\nlast_branch = 580\nmodules = \"either\"",
            "Ada is out of order beside Ampere",
        ),
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
        ("[[colour]]\nname = 1", "colour: no such table"),
        ("[colour]\nname = 1", "colour: no such table"),
        ("[toolkit]\ncuda = \"14.0\"", "toolkit: a row is written [[toolkit]]"),
        ("[[toolkit]]\ncuda = \"14.0\"", "[[toolkit]] 1 does not count: missing field `driver`"),
        ("[[toolkit]]\ncuda = \"new\"\ndriver = \"650\"", "\"new\" is not a version"),
        ("[[major]]\nnumber = -1\ndriver = \"650\"", "[[major]] 1 does not count"),
        ("[[major]]\nnumber = 10\ndriver = \"440.33\"", "began with CUDA 11"),
        ("[[compat]]\ncuda = \"14.0\"", "neither driver nor branches"),
        ("[[gpu]]\ncompute_capability = \"14.0\"", "neither pci nor name"),
        ("[[gpu]]\npci = \"0x4000\"", "missing field `compute_capability`"),
        ("[[gpu]]\npci = \"0x4000\"\ncompute_capability = \"new\"", "\"new\" is not a version"),
        ("[[gpu]]\npci = 0x4000\ncompute_capability = \"14.0\"", "expected a string"),
        ("[[gpu]]\npci = \"4000\"\ncompute_capability = \"14.0\"", "neither a device id"),
        ("[[gpu]]\npci = \"0x40ff-0x4000\"\ncompute_capability = \"14.0\"", "nor a range"),
        ("[[gpu]]\npci = \"0x+1\"\ncompute_capability = \"14.0\"", "neither a device id"),
        ("[[gpu]]\nname = \"NVIDIA \"\ncompute_capability = \"14.0\"", "its name is empty"),
        ("[[gpu]]\nname = \"X200-SXM\"\ncompute_capability = \"14.0\"", "as far as the first"),
        ("[[target]]\ncuda = \"14.0\"\ncapabilities = []", "no capabilities"),
        ("[[generation]]\nname = \"N\"\ncapabilities = [\"14.0\"]\nmodules = \"shut\"", "unknown variant"),
        (
            "[[generation]]\nname = \"N\"\ncapabilities = [\"9.0\", \"14.0\"]\nmodules = \"open\"",
            "shares a compute capability with Hopper",
        ),
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
    fn any_gpus_leave_the_tables_in_order(
        ids in proptest::collection::vec((any::<u16>(), any::<u16>()), 0..20),
        others in proptest::collection::vec((8u32..16, 0u32..10, 5u32..15, 5u32..15, 300u32..700), 0..20),
    ) {
        use std::fmt::Write as _;
        let mut text = String::new();
        for (first, last) in ids {
            writeln!(text, "[[gpu]]\npci = \"{first:#06x}-{last:#06x}\"\ncompute_capability = \"9.0\"").unwrap();
        }
        for (major, minor, least, most, branch) in others {
            let capabilities = format!("capabilities = [\"{most}.0\", \"{least}.0\"]");
            writeln!(text, "[[target]]\ncuda = \"{major}.{minor}\"\n{capabilities}").unwrap();
            writeln!(text, "[[ptx]]\ncuda = \"{major}.{minor}\"\nisa = \"{least}.{minor}\"").unwrap();
            writeln!(text, "[[generation]]\nname = \"{minor}\"\nfirst_branch = {branch}\nmodules = \"open\"\n{capabilities}").unwrap();
        }
        let (knowledge, _) = laid(&text);
        prop_assert!(knowledge.chips.iter().all(|chip| chip.first <= chip.last));
        prop_assert!(knowledge.chips.windows(2).all(|pair| pair[0].last < pair[1].first));
        prop_assert!(knowledge.targets.windows(2).all(|pair| pair[0].cuda < pair[1].cuda && pair[0].min() <= pair[1].min() && pair[0].max() <= pair[1].max()));
        prop_assert!(knowledge.ptx.windows(2).all(|pair| pair[0].cuda < pair[1].cuda && pair[0].isa <= pair[1].isa));
        let last = |row: &crate::model::knowledge::Generation| row.last_branch.unwrap_or(u32::MAX);
        for pair in knowledge.generations.windows(2) {
            prop_assert!(pair[0].first_branch <= pair[1].first_branch && last(&pair[0]) <= last(&pair[1]), "{:?}", pair);
        }
        let mut all: Vec<_> = knowledge.generations.iter().flat_map(|row| row.capabilities.iter()).collect();
        let count = all.len();
        all.sort();
        all.dedup();
        prop_assert_eq!(all.len(), count);
    }

    #[test]
    fn nothing_panics(text in "(?s).{0,200}") {
        let _ = laid(&text);
    }
}

#[test]
fn what_the_readme_shows_counts_whole() {
    let readme = include_str!("../../../README.md");
    let block = readme.split("```toml\n").find(|block| block.starts_with("[[toolkit]]")).expect("an example");
    let text = block.split("```").next().expect("its end");
    let mut knowledge = BUILT_IN;
    assert_eq!(lay_over(&mut knowledge, text), Vec::<String>::new());
    assert_ne!(knowledge, BUILT_IN);
}
