//! The recorded values and what comes of them.

use super::{Evaluation, Subject, evaluate, parse};

const VECTORS: &str = include_str!("vectors.txt");

#[test]
fn every_recorded_value_evaluates_as_recorded() {
    let mut hosts = Vec::new();
    let mut lists: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut compared = 0;
    for line in VECTORS.lines().filter(|line| !line.starts_with('#')) {
        if let Some(host) = line.strip_prefix("host ") {
            let words: Vec<&str> = host.split(' ').collect();
            hosts.push(Subject {
                cuda: Some(words[0].parse().unwrap()),
                driver: Some(words[1].parse().unwrap()),
                brand: Some(words[2]),
                arch: Some(words[3].parse().unwrap()),
            });
        } else if let Some(list) = line.strip_prefix("list ") {
            let (name, brands) = list.split_once(' ').unwrap();
            lists.push((name, brands.split(',').collect()));
        } else {
            let (expected, value) = line.split_once(' ').unwrap();
            let value = expand(value.trim_matches('|'), &lists);
            let expression = parse(&value).unwrap();
            assert_eq!(parse(&expression.to_string()).unwrap(), expression, "{value}");
            for (host, letter) in hosts.iter().zip(expected.chars()) {
                let found = match evaluate(&expression, host) {
                    Evaluation::Satisfied => 'o',
                    Evaluation::Unsatisfied => 'u',
                    Evaluation::Invalid(_) => 'i',
                    Evaluation::SatisfiedUnlessUnknown(_) => '?',
                };
                assert_eq!(found, letter, "{value} on {host:?}");
                compared += 1;
            }
        }
    }
    assert!(hosts.len() == 13 && compared >= 80 * 13, "{compared} were compared");
}

fn expand(value: &str, lists: &[(&str, Vec<&str>)]) -> String {
    let mut out = value.to_owned();
    for (name, brands) in lists {
        while let Some(at) = out.find(&format!("{name}(")) {
            let end = at + out[at..].find(')').unwrap();
            let branch: u32 = out[at + name.len() + 1..end].parse().unwrap();
            let of = |brand: &&str| format!("brand={brand},driver>={branch},driver<{}", branch + 1);
            out.replace_range(at..=end, &brands.iter().map(of).collect::<Vec<_>>().join(" "));
        }
    }
    out
}
