//! The tables, and what is asked of them.

use proptest::prelude::*;

use super::{Brand, CHIPS, GENERATIONS, PRODUCTS, PTX, TARGETS, cc};
use crate::knowledge::BUILT_IN;
use crate::model::{ComputeCapability, Release};

const BRANDS: [Brand; 17] = [
    Brand::Unknown,
    Brand::Quadro,
    Brand::Tesla,
    Brand::Nvs,
    Brand::Grid,
    Brand::GeForce,
    Brand::Titan,
    Brand::VApps,
    Brand::VPc,
    Brand::VCs,
    Brand::VWs,
    Brand::CloudGaming,
    Brand::QuadroRtx,
    Brand::NvidiaRtx,
    Brand::Nvidia,
    Brand::GeForceRtx,
    Brand::TitanRtx,
];

fn v(text: &str) -> Release {
    text.parse().unwrap()
}

#[test]
fn the_tables_are_in_order() {
    assert!(CHIPS.iter().all(|c| c.first <= c.last));
    assert!(CHIPS.windows(2).all(|pair| pair[0].last < pair[1].first));
    assert!(TARGETS.windows(2).all(|pair| pair[0].cuda < pair[1].cuda));
    assert!(TARGETS.iter().all(|t| t.capabilities.windows(2).all(|pair| pair[0] < pair[1])));
    assert!(TARGETS.windows(2).all(|pair| pair[0].min() <= pair[1].min() && pair[0].max() <= pair[1].max()));
    assert!(PTX.windows(2).all(|pair| pair[0].cuda < pair[1].cuda && pair[0].isa <= pair[1].isa));
    let last = |g: &crate::model::knowledge::Generation| g.last_branch.unwrap_or(u32::MAX);
    assert!(GENERATIONS.windows(2).all(|pair| last(&pair[0]) <= last(&pair[1])));
    assert!(GENERATIONS.windows(2).all(|pair| pair[0].first_branch <= pair[1].first_branch));
    let mut all: Vec<ComputeCapability> = GENERATIONS.iter().flat_map(|g| g.capabilities.iter().copied()).collect();
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count, "a capability is of one generation");
    for capability in CHIPS.iter().map(|c| c.capability).chain(PRODUCTS.iter().map(|p| p.capability)) {
        assert!(all.contains(&capability), "{capability}");
    }
    for product in PRODUCTS {
        let model = product.models.split(' ').next().unwrap_or_default();
        let name = format!("{} {model} {}", product.family, product.with);
        let found = BUILT_IN.capability_of(Some(name.trim()), None);
        assert_eq!(found, Some(product.capability), "{name}: another row comes first");
    }
}

#[test]
fn a_gpu_is_known_by_its_name() {
    for (name, capability) in [
        ("Tesla V100-SXM2-32GB", cc(7, 0)),
        ("GeForce GTX 1080 Ti", cc(6, 1)),
        ("NVIDIA A100-SXM4-80GB", cc(8, 0)),
        ("A100-PCIE-40GB", cc(8, 0)),
        ("NVIDIA A100 80GB PCIe", cc(8, 0)),
        ("NVIDIA GeForce RTX 5090 D", cc(12, 0)),
        ("NVIDIA GeForce RTX 4050 Laptop GPU", cc(8, 9)),
        ("NVIDIA GeForce RTX 3050Ti Laptop GPU", cc(8, 6)),
        ("NVIDIA GeForce RTX 3050 A Laptop GPU", cc(8, 9)),
        ("GeForce RTX 3090", cc(8, 6)),
        ("NVIDIA A2-4Q", cc(8, 6)),
        ("GRID V100D-8Q", cc(7, 0)),
        ("NVIDIA RTX A6000", cc(8, 6)),
        ("NVIDIA RTX 6000 Ada Generation", cc(8, 9)),
        ("Quadro RTX 6000", cc(7, 5)),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", cc(12, 0)),
        ("NVIDIA RTX 6000D", cc(12, 0)),
        ("NVIDIA GH200 144G HBM3e", cc(9, 0)),
        ("NVIDIA H20-3e", cc(9, 0)),
        ("NVIDIA GB300", cc(10, 3)),
        ("NVIDIA GB10", cc(12, 1)),
        ("NVIDIA TITAN X (Pascal)", cc(6, 1)),
        ("GeForce GTX TITAN X", cc(5, 2)),
        ("GeForce GTX TITAN", cc(3, 5)),
        ("TITAN V", cc(7, 0)),
        ("Tesla K80", cc(3, 7)),
        ("NVIDIA T1000 8GB", cc(7, 5)),
        ("Orin (nvgpu)", cc(8, 7)),
    ] {
        assert_eq!(BUILT_IN.capability_of(Some(name), None), Some(capability), "{name}");
    }
    for name in ["", "NVIDIA", "GeForce RTX 6090", "NVIDIA RTX 6000", "TITAN X", "NVIDIA R200", "GeForce", "A1000", "é"]
    {
        assert_eq!(BUILT_IN.capability_of(Some(name), None), None, "{name}");
    }
}

#[test]
fn a_gpu_is_known_by_its_pci_device() {
    for (id, capability) in [
        (0x102D, cc(3, 7)),
        (0x118F, cc(3, 0)),
        (0x1140, cc(2, 1)),
        (0x13BD, cc(5, 0)),
        (0x13F2, cc(5, 2)),
        (0x15F9, cc(6, 0)),
        (0x1B06, cc(6, 1)),
        (0x1DB6, cc(7, 0)),
        (0x1EB8, cc(7, 5)),
        (0x20B2, cc(8, 0)),
        (0x2204, cc(8, 6)),
        (0x2330, cc(9, 0)),
        (0x2684, cc(8, 9)),
        (0x2822, cc(8, 9)),
        (0x2901, cc(10, 0)),
        (0x2B85, cc(12, 0)),
        (0x2E12, cc(12, 1)),
        (0x3182, cc(10, 3)),
    ] {
        assert_eq!(BUILT_IN.capability_of(None, Some(id)), Some(capability), "{id:04x}");
    }
    for id in [0, 0x29BB, 0x3000, 0x3200, u16::MAX] {
        assert_eq!(BUILT_IN.capability_of(None, Some(id)), None, "{id:04x}");
    }
    assert_eq!(BUILT_IN.capability_of(Some("Tesla T4"), Some(0x3FFF)), Some(cc(7, 5)), "by name where the id is new");
}

#[test]
fn a_brand_is_nvmls() {
    for (name, brand, word) in [
        ("Tesla T4", Brand::Tesla, "Tesla"),
        ("NVIDIA A100-SXM4-40GB", Brand::Nvidia, "Unknown"),
        ("NVIDIA L4", Brand::Nvidia, "Unknown"),
        ("GeForce GTX 1080 Ti", Brand::GeForce, "GeForce"),
        ("NVIDIA GeForce RTX 5090", Brand::GeForce, "GeForce"),
        ("NVIDIA TITAN RTX", Brand::Titan, "TITAN"),
        ("GeForce GTX TITAN X", Brand::Titan, "TITAN"),
        ("Quadro RTX 6000", Brand::QuadroRtx, "Unknown"),
        ("Quadro P4000", Brand::Quadro, "Quadro"),
        ("NVIDIA RTX A6000", Brand::NvidiaRtx, "Unknown"),
        ("NVIDIA A2-4Q", Brand::VWs, "Unknown"),
        ("NVIDIA RTXA6000-12C", Brand::VCs, "Unknown"),
        ("NVS 510", Brand::Nvs, "NVS"),
    ] {
        assert_eq!(Brand::of(Some(name), None).map(|b| (b, b.for_requirements())), Some((brand, word)), "{name}");
    }
    for name in ["NVIDIA T1000", "NVIDIA CMP 170HX", "GRID V100D-8Q", "NVIDIA DGX Display", "Titanic", "A100000", ""] {
        assert_eq!(Brand::of(Some(name), None), None, "{name}");
    }
    for (id, brand) in
        [(0x1EB8, Brand::Tesla), (0x20B0, Brand::Nvidia), (0x2684, Brand::GeForce), (0x2230, Brand::NvidiaRtx)]
    {
        assert_eq!(Brand::of(None, Some(id)), Some(brand), "{id:04x}");
        assert_eq!(Brand::of(Some("never heard of"), Some(id)), Some(brand), "{id:04x}");
    }
    assert_eq!((Brand::Unknown.number(), Brand::QuadroRtx.number(), Brand::TitanRtx.number()), (0, 12, 16));
    let allowed: Vec<u32> =
        BRANDS.into_iter().filter(|b| b.allows_forward_compatibility()).map(Brand::number).collect();
    assert_eq!(allowed, [1, 2, 7, 8, 9, 10, 11, 12, 13, 14], "as in the notes of 575.57.08 and 590.44.01");
}

#[test]
fn a_generation_ends_with_a_branch() {
    let supports = |major, minor, driver: &str| BUILT_IN.driver_supports(cc(major, minor), &v(driver));
    assert_eq!(supports(3, 7, "470.256.02"), Some(true));
    assert_eq!(supports(3, 7, "475.14"), Some(true), "a Windows driver of the same branch");
    assert_eq!(supports(3, 7, "495.29.05"), Some(false));
    assert_eq!(supports(7, 0, "580.95.05"), Some(true));
    assert_eq!(supports(7, 0, "590.44.01"), Some(false));
    assert_eq!(supports(7, 0, "999.1"), Some(false));
    assert_eq!(supports(12, 0, "620.70.06"), Some(true));
    assert_eq!(supports(12, 0, "550.54.14"), None, "its first branch is a hint");
    assert_eq!(supports(15, 0, "620.70.06"), None);
    let generation =
        |major, minor| BUILT_IN.generation_of(cc(major, minor)).map(|a| (a.value.name.to_string(), a.by_rule));
    assert_eq!(generation(8, 9), Some(("Ada".into(), false)));
    assert_eq!(generation(10, 7), Some(("Rubin".into(), false)));
    assert_eq!(generation(8, 8), Some(("Ampere".into(), true)));
    assert_eq!(generation(14, 0), Some(("Rubin".into(), true)));
    assert_eq!(generation(4, 0), None);
    assert_eq!(generation(1, 3), None);
}

#[test]
fn a_toolkit_compiles_for_what_its_release_knew() {
    let of = |cuda: &str| BUILT_IN.targets_of(&v(cuda)).map(|a| (a.value.min(), a.value.max(), a.by_rule));
    assert_eq!(of("11.8"), Some((Some(cc(3, 5)), Some(cc(9, 0)), false)));
    assert_eq!(of("12.6.3"), Some((Some(cc(5, 0)), Some(cc(9, 0)), false)));
    assert_eq!(of("13.5"), Some((Some(cc(7, 5)), Some(cc(12, 1)), false)));
    assert_eq!(of("14.2"), Some((Some(cc(7, 5)), Some(cc(12, 1)), true)));
    assert_eq!(of("7.5"), None);
    let ptx = |cuda: &str| BUILT_IN.ptx_of(&v(cuda)).map(|a| (a.value, a.by_rule));
    assert_eq!(ptx("12.8.1"), Some(((8, 7), false)));
    assert_eq!(ptx("14.0"), Some(((9, 5), true)));
    let needs = |isa| BUILT_IN.cuda_of_ptx(isa).map(|a| (a.value.to_string(), a.by_rule));
    assert_eq!(needs((8, 5)), Some(("12.5".into(), false)));
    assert_eq!(needs((8, 7)), Some(("12.8".into(), false)));
    assert_eq!(needs((4, 0)), Some(("8.0".into(), false)), "or older");
    assert_eq!(needs((10, 1)), Some(("13.5".into(), true)));
}

proptest! {
    #[test]
    fn any_name_is_read_without_a_panic(name in "\\PC{0,40}|(NVIDIA |Tesla |RTX |[A-Z0-9-]){0,12}", id: u16) {
        let _ = BUILT_IN.capability_of(Some(&name), Some(id));
        let _ = Brand::of(Some(&name), Some(id));
    }
}
