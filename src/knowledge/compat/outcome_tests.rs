use super::*;
use crate::knowledge::BUILT_IN;
use crate::knowledge::compat::{Activation, Way, toolkit_activates};
use crate::model::Release;
use crate::model::image::{CompatNote, Reach};
use proptest::prelude::*;

const TESLA: u32 = 2;
const NVIDIA: u32 = 14;
const GEFORCE: u32 = 5;
const GEFORCE_RTX: u32 = 15;

fn v(text: &str) -> Release {
    text.parse().unwrap()
}

fn gpu(brand: u32, capability: &str) -> Gpu {
    Gpu { brand: Some(brand), capability: capability.parse().ok() }
}

fn compat(version: &str) -> Compat {
    Compat {
        directory: "/usr/local/cuda/compat".to_owned(),
        current: true,
        cache: true,
        version: version.parse().ok(),
        note: None,
        reach: None,
    }
}

fn noted(version: &str, cuda: &str, branches: &[u32]) -> Compat {
    let note = CompatNote { cuda: v(cuda), branches: branches.to_vec(), brands: BRANDS.to_vec() };
    Compat { note: Some(note), ..compat(version) }
}

fn of(cuda: &str, driver: &str, compat: Option<&Compat>, gpus: &[Gpu]) -> Result<Outcome, Lacking> {
    let (cuda, driver) = (cuda.parse().ok(), v(driver));
    let question = Question { cuda: cuda.as_ref(), driver: &driver, compat, gpus };
    outcome(&BUILT_IN, &question).map(|decided| decided.outcome)
}

#[test]
fn without_a_library_the_driver_decides() {
    assert_eq!(of("12.2", "535.183.01", None, &[]), Ok(Outcome::NotNeeded));
    assert_eq!(of("12.8", "535.183.01", None, &[]), Ok(Outcome::MinorVersion));
    assert_eq!(of("12.8", "470.57.02", None, &[]), Ok(Outcome::Impossible));
    assert_eq!(of("13.5", "655.10", None, &[]), Ok(Outcome::NotNeeded));
    assert_eq!(of("13.9", "655.10", None, &[]), Ok(Outcome::MinorVersion), "at the least");
    assert_eq!(of("14.0", "655.10", None, &[]), Err(Lacking::Driver));
    assert_eq!(of("", "535.183.01", None, &[]), Err(Lacking::Runtime));
}

#[test]
fn a_newer_library_works_where_note_brand_and_branch_allow_it() {
    let library = noted("590.44.01", "13.1", &[535, 550, 570, 575, 580, 590]);
    let a100 = [gpu(NVIDIA, "8.0")];
    assert_eq!(of("13.0", "575.57.08", Some(&library), &a100), Ok(Outcome::Forward));
    assert_eq!(of("13.0", "560.35.03", Some(&library), &a100), Ok(Outcome::OlderWins), "560 is not listed");
    assert_eq!(of("14.0", "575.57.08", Some(&library), &a100), Ok(Outcome::Impossible));
    assert_eq!(of("", "575.57.08", Some(&library), &a100), Ok(Outcome::Forward));
    let rtx = gpu(GEFORCE_RTX, "12.0");
    assert_eq!(of("13.0", "575.57.08", Some(&library), &[rtx]), Ok(Outcome::RefusedOnGpu));
    assert_eq!(of("13.0", "575.57.08", Some(&library), &[a100[0], rtx]), Ok(Outcome::RefusedOnGpu), "one is enough");
    assert_eq!(of("13.0", "590.44.01", Some(&library), &[rtx]), Ok(Outcome::NotNeeded), "the same library");
}

#[test]
fn the_table_stands_in_for_a_note() {
    let a100 = [gpu(NVIDIA, "8.0")];
    assert_eq!(of("13.0", "575.57.08", Some(&compat("580.82.07")), &a100), Ok(Outcome::Forward));
    assert_eq!(of("13.0", "545.23.08", Some(&compat("580.82.07")), &a100), Err(Lacking::Branches));
    assert_eq!(of("15.0", "620.70.06", Some(&compat("700.10")), &a100), Err(Lacking::Branches));
}

#[test]
fn nothing_is_said_where_a_fact_lacks() {
    let library = compat("580.82.07");
    let unknown = [Gpu::default()];
    assert_eq!(of("13.0", "575.57.08", Some(&library), &[]), Err(Lacking::Brand));
    assert_eq!(of("13.0", "575.57.08", Some(&library), &unknown), Err(Lacking::Brand));
    assert_eq!(of("13.0", "575.57.08", Some(&library), &[gpu(0, "8.0")]), Err(Lacking::Brand));
    assert_eq!(of("13.0", "595.58.03", Some(&library), &unknown), Ok(Outcome::OlderWins), "whatever the GPU");
    assert_eq!(of("13.0", "575.57.08", Some(&compat("")), &unknown), Err(Lacking::CompatVersion));
    let tesla = [Gpu { brand: Some(TESLA), capability: None }];
    let library = noted("590.44.01", "13.1", &[535]);
    assert_eq!(of("13.1", "535.183.01", Some(&library), &tesla), Err(Lacking::Capability));
    let v100 = gpu(TESLA, "7.0");
    assert_eq!(of("13.1", "535.183.01", Some(&library), &[v100]), Ok(Outcome::Impossible));
    assert_eq!(of("13.1", "535.183.01", Some(&library), &[v100, gpu(NVIDIA, "8.0")]), Ok(Outcome::Forward));
}

/// How a case gave its GPU, and what its image brought.
struct Case {
    way: Way,
    toolkit: &'static str,
    reach: bool,
    compat: &'static str,
    cuda: &'static str,
    driver: &'static str,
    gpu: Gpu,
}

impl Case {
    fn outcome(&self) -> Result<Outcome, Lacking> {
        let driver = v(self.driver);
        let reach =
            self.reach.then(|| Reach { source: "LD_LIBRARY_PATH".to_owned(), before: Vec::new(), cached: None });
        let library = Compat { reach, ..compat(self.compat) };
        let cdi = self.way == Way::Cdi;
        let activation = toolkit_activates(self.way, Some(&v(self.toolkit)), None, false, cdi, &library, &driver);
        let active = self.reach || activation.unwrap() != Activation::Ignored;
        of(self.cuda, self.driver, active.then_some(&library), &[self.gpu])
    }
}

#[test]
fn cases_from_the_field() {
    let case = |toolkit, compat, cuda, driver, gpu| {
        Case { way: Way::Cli, toolkit, reach: false, compat, cuda, driver, gpu }.outcome()
    };
    // blog i.hsfzxjy.site, RTX 3090; DeepVAC/TorchPod#43, GTX 1650; club-3090#633
    assert_eq!(case("1.10.0", "465.19.01", "11.3", "460.67", gpu(GEFORCE_RTX, "8.6")), Ok(Outcome::RefusedOnGpu));
    assert_eq!(case("1.4.0", "465.19.01", "11.3", "460.80", gpu(GEFORCE, "7.5")), Ok(Outcome::RefusedOnGpu));
    assert_eq!(case("1.18.1", "595.45.04", "13.2", "580.159.03", gpu(GEFORCE_RTX, "8.6")), Ok(Outcome::RefusedOnGpu));
    // nvidia/container-images/cuda, issue 182: a K80
    assert_eq!(case("1.7.0", "495.29.05", "11.5", "470.82.01", gpu(TESLA, "3.7")), Ok(Outcome::Impossible));
    // vllm#33992 on an A100, and nvidia-container-toolkit#934: 1.17.4 leaves the libraries alone
    assert_eq!(case("1.17.4", "580.82.07", "13.0", "575.57.08", gpu(NVIDIA, "8.0")), Ok(Outcome::Impossible));
    assert_eq!(case("1.17.4", "570.86.15", "12.8", "550.144.03", gpu(NVIDIA, "9.0")), Ok(Outcome::MinorVersion));

    let led = |way, toolkit, compat, cuda, driver, gpu| {
        Case { way, toolkit, reach: true, compat, cuda, driver, gpu }.outcome()
    };
    // llama.cpp#23111, gpustack#4678, Paddle#76558 (same branch), Paddle#77784: the image leads the loader there
    for (toolkit, library, cuda, driver) in [
        ("1.18.1", "580.82.07", "13.0", "595.58.03"),
        ("1.18.1", "575.57.08", "12.9", "580.105.08"),
        ("1.17.8", "580.82.07", "13.0", "580.95.05"),
        ("1.16.2", "520.61.05", "11.8", "535.154.05"),
    ] {
        for way in [Way::Cdi, Way::Cli] {
            let outcome = led(way, toolkit, library, cuda, driver, gpu(GEFORCE_RTX, "12.0"));
            assert_eq!(outcome, Ok(Outcome::OlderWins), "{library} on {driver}");
        }
        let left = case(toolkit, library, cuda, driver, gpu(GEFORCE_RTX, "12.0"));
        assert_eq!(left, Ok(Outcome::NotNeeded), "{library} on {driver}, which the toolkit leaves alone");
    }
}

fn works(outcome: Result<Outcome, Lacking>) -> bool {
    matches!(outcome, Ok(Outcome::NotNeeded | Outcome::MinorVersion | Outcome::Forward))
}

proptest! {
    #[test]
    fn a_newer_driver_runs_what_an_older_one_runs(a in 450u32..640, b in 450u32..640, major in 10u32..14, minor in 0u32..9) {
        let (older, newer) = (a.min(b).to_string(), a.max(b).to_string());
        let cuda = format!("{major}.{minor}");
        prop_assert!(!works(of(&cuda, &older, None, &[])) || works(of(&cuda, &newer, None, &[])));
    }

    #[test]
    fn a_gpu_that_refuses_never_helps(host in 450u32..640, library in 450u32..640, brand in 0u32..17) {
        let compat = compat(&format!("{library}.10"));
        let host = format!("{host}.20");
        let alone = of("", &host, Some(&compat), &[gpu(GEFORCE, "8.6")]);
        let with = of("", &host, Some(&compat), &[gpu(brand, "8.0"), gpu(GEFORCE, "8.6")]);
        prop_assert!(!works(alone) && !works(with));
    }
}
