//! The brand of a GPU, as NVML tells it.
//!
//! Two things go by it: whether forward compatibility is allowed, and the alternatives of `NVIDIA_REQUIRE_CUDA`.
//! Names and numbers are those of `nvmlBrandType_t` (nvml.h of 13.4). That products with "RTX" in their name are
//! of the brand `GeForce` and not `GeForceRTX` shows in reports of requirements refused on them (dashdot#1226: an
//! RTX 4050 with driver 535 is not `brand=unknown`, which libnvidia-container makes of every brand it has no word
//! for); of TITAN RTX the same is taken.
//!
//! By PCI device id only what all names in the PCI ID data base (2023.04.11) and in the list of
//! open-gpu-kernel-modules 595.45.04 agree on: NVIDIA gives `GeForce`, workstation and data-centre boards of a chip
//! ranges of their own. Read 2026-11. Mining boards, engineering samples and boards of which the driver may say
//! `Quadro` or `NVIDIA RTX` (T400 to T1200) are left out.

use super::products::without;
use crate::knowledge::compat::BRANDS;

/// `nvmlBrandType_t`
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are NVML's")]
pub enum Brand {
    Unknown,
    Quadro,
    Tesla,
    Nvs,
    Grid,
    GeForce,
    Titan,
    VApps,
    VPc,
    VCs,
    VWs,
    CloudGaming,
    QuadroRtx,
    NvidiaRtx,
    Nvidia,
    GeForceRtx,
    TitanRtx,
}

/// Boards that are of the brand `Nvidia`.
const DATA_CENTRE: [&str; 36] = [
    "A2", "A10", "A10G", "A10M", "A16", "A30", "A30X", "A40", "A100", "A100X", "A800", "AX800", "H20", "H100", "H200",
    "H800", "GH200", "L2", "L4", "L20", "L40", "L40S", "L40G", "B200", "GB200", "B300", "GB300", "A100D", "A100DX",
    "A800D", "A800DX", "H100XM", "H100L", "H100XL", "H800XM", "H200X",
];

impl Brand {
    /// The brand, by the product name that the driver gives, or else by the PCI device id (vendor 10de).
    pub fn of(name: Option<&str>, pci_device: Option<u16>) -> Option<Self> {
        let by_id = |id: u16| RANGES.iter().find(|(first, last, _)| (*first..=*last).contains(&id)).map(|r| r.2);
        name.and_then(by_name).or_else(|| pci_device.and_then(by_id))
    }

    /// NVML's number.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Forward compatibility works on GPUs of this brand. Jetson's come without a brand and are not asked here.
    pub fn allows_forward_compatibility(self) -> bool {
        BRANDS.contains(&self.number())
    }

    /// The word that libnvidia-container hands to the evaluator of requirements (`src/driver.c`,
    /// 06deb20d): it knows the brands of 2018.
    pub const fn for_requirements(self) -> &'static str {
        match self {
            Self::Quadro => "Quadro",
            Self::Tesla => "Tesla",
            Self::Nvs => "NVS",
            Self::Grid => "GRID",
            Self::GeForce => "GeForce",
            Self::Titan => "TITAN",
            _ => "Unknown",
        }
    }
}

fn by_name(name: &str) -> Option<Brand> {
    let name = name.trim();
    let bare = without(name, "NVIDIA");
    let starts = |word: &str| without(bare, word) != bare;
    let model = bare.split([' ', '-']).next().unwrap_or_default();
    let is_board = DATA_CENTRE.iter().any(|board| board.eq_ignore_ascii_case(model));
    if starts("GeForce GTX TITAN") || bare.eq_ignore_ascii_case("GeForce GTX TITAN") || starts("TITAN") {
        Some(Brand::Titan)
    } else if starts("GeForce") {
        Some(Brand::GeForce)
    } else if starts("Quadro RTX") {
        Some(Brand::QuadroRtx)
    } else if starts("Quadro") {
        Some(Brand::Quadro)
    } else if starts("Tesla") {
        Some(Brand::Tesla)
    } else if starts("NVS") {
        Some(Brand::Nvs)
    } else if starts("GRID") {
        // of a virtual GPU it depends on the driver
        None
    } else if let Some(virtual_gpu) = of_virtual_gpu(bare) {
        Some(virtual_gpu)
    } else if starts("RTX") {
        Some(Brand::NvidiaRtx)
    } else if is_board {
        Some(Brand::Nvidia)
    } else {
        None
    }
}

/// `A2-4Q`, `RTXA6000-12C`: memory in GB, and what the licence is for (vGPU documentation, "virtual GPU types").
fn of_virtual_gpu(name: &str) -> Option<Brand> {
    let (_, profile) = name.rsplit_once('-')?;
    let kind = profile.strip_prefix(|c: char| c.is_ascii_digit())?.trim_start_matches(|c: char| c.is_ascii_digit());
    match kind {
        "Q" => Some(Brand::VWs),
        "C" => Some(Brand::VCs),
        "B" => Some(Brand::VPc),
        "A" => Some(Brand::VApps),
        _ => None,
    }
}

/// First and last PCI device id of one brand, in order.
const RANGES: &[(u16, u16, Brand)] = &[
    (0x101E, 0x102F, Brand::Tesla),
    (0x1340, 0x134F, Brand::GeForce),
    (0x1380, 0x1382, Brand::GeForce),
    (0x1390, 0x139F, Brand::GeForce),
    (0x13B0, 0x13B6, Brand::Quadro),
    (0x13BA, 0x13BC, Brand::Quadro),
    (0x13BD, 0x13BD, Brand::Tesla),
    (0x13C0, 0x13DF, Brand::GeForce),
    (0x13F0, 0x13F1, Brand::Quadro),
    (0x13F2, 0x13F3, Brand::Tesla),
    (0x13F8, 0x13FB, Brand::Quadro),
    (0x1401, 0x1427, Brand::GeForce),
    (0x15F7, 0x15F9, Brand::Tesla),
    (0x1617, 0x161A, Brand::GeForce),
    (0x17C2, 0x17C2, Brand::Titan),
    (0x17C8, 0x17C8, Brand::GeForce),
    (0x17F0, 0x17F1, Brand::Quadro),
    (0x17FD, 0x17FD, Brand::Tesla),
    (0x1B00, 0x1B00, Brand::Titan),
    (0x1B02, 0x1B02, Brand::Titan),
    (0x1B06, 0x1B06, Brand::GeForce),
    (0x1B30, 0x1B30, Brand::Quadro),
    (0x1B38, 0x1B38, Brand::Tesla),
    (0x1B80, 0x1B84, Brand::GeForce),
    (0x1BA0, 0x1BA2, Brand::GeForce),
    (0x1BB0, 0x1BB1, Brand::Quadro),
    (0x1BB3, 0x1BB4, Brand::Tesla),
    (0x1BB5, 0x1BBB, Brand::Quadro),
    (0x1BE0, 0x1BE1, Brand::GeForce),
    (0x1C02, 0x1C06, Brand::GeForce),
    (0x1C20, 0x1C23, Brand::GeForce),
    (0x1C30, 0x1C31, Brand::Quadro),
    (0x1C60, 0x1C62, Brand::GeForce),
    (0x1C81, 0x1C96, Brand::GeForce),
    (0x1CB1, 0x1CBD, Brand::Quadro),
    (0x1CCC, 0x1CCD, Brand::GeForce),
    (0x1CFA, 0x1CFB, Brand::Quadro),
    (0x1D01, 0x1D16, Brand::GeForce),
    (0x1D33, 0x1D34, Brand::Quadro),
    (0x1D52, 0x1D56, Brand::GeForce),
    (0x1D81, 0x1D81, Brand::Titan),
    (0x1DB1, 0x1DB8, Brand::Tesla),
    (0x1DBA, 0x1DBA, Brand::Quadro),
    (0x1DF5, 0x1DF6, Brand::Tesla),
    (0x1E02, 0x1E02, Brand::Titan),
    (0x1E03, 0x1E07, Brand::GeForce),
    (0x1E30, 0x1E36, Brand::QuadroRtx),
    (0x1E78, 0x1E78, Brand::QuadroRtx),
    (0x1E81, 0x1E93, Brand::GeForce),
    (0x1EB0, 0x1EB1, Brand::QuadroRtx),
    (0x1EB5, 0x1EB6, Brand::QuadroRtx),
    (0x1EB8, 0x1EB8, Brand::Tesla),
    (0x1EC2, 0x1ED3, Brand::GeForce),
    (0x1EF5, 0x1EF5, Brand::QuadroRtx),
    (0x1F02, 0x1F0A, Brand::GeForce),
    (0x1F10, 0x1F15, Brand::GeForce),
    (0x1F36, 0x1F36, Brand::QuadroRtx),
    (0x1F42, 0x1F55, Brand::GeForce),
    (0x1F82, 0x1FA0, Brand::GeForce),
    (0x1FB8, 0x1FB9, Brand::Quadro),
    (0x1FD9, 0x1FDD, Brand::GeForce),
    (0x1FF9, 0x1FF9, Brand::Quadro),
    (0x20B0, 0x20B5, Brand::Nvidia),
    (0x20B7, 0x20B9, Brand::Nvidia),
    (0x20BD, 0x20BD, Brand::Nvidia),
    (0x20F0, 0x20F6, Brand::Nvidia),
    (0x2182, 0x2188, Brand::GeForce),
    (0x2191, 0x21D1, Brand::GeForce),
    (0x2203, 0x220A, Brand::GeForce),
    (0x2216, 0x2216, Brand::GeForce),
    (0x2230, 0x2233, Brand::NvidiaRtx),
    (0x2235, 0x2238, Brand::Nvidia),
    (0x2302, 0x2348, Brand::Nvidia),
    (0x2414, 0x2420, Brand::GeForce),
    (0x2438, 0x2438, Brand::NvidiaRtx),
    (0x2460, 0x2489, Brand::GeForce),
    (0x249C, 0x24A0, Brand::GeForce),
    (0x24B0, 0x24BB, Brand::NvidiaRtx),
    (0x24C7, 0x24E0, Brand::GeForce),
    (0x24FA, 0x24FA, Brand::NvidiaRtx),
    (0x2501, 0x2523, Brand::GeForce),
    (0x2531, 0x2531, Brand::NvidiaRtx),
    (0x2544, 0x2563, Brand::GeForce),
    (0x2571, 0x2571, Brand::NvidiaRtx),
    (0x2582, 0x25AD, Brand::GeForce),
    (0x25B0, 0x25B5, Brand::NvidiaRtx),
    (0x25B6, 0x25B6, Brand::Nvidia),
    (0x25B8, 0x25BD, Brand::NvidiaRtx),
    (0x25E0, 0x25ED, Brand::GeForce),
    (0x25F9, 0x25FB, Brand::NvidiaRtx),
    (0x2684, 0x2689, Brand::GeForce),
    (0x26B1, 0x26B3, Brand::NvidiaRtx),
    (0x26B5, 0x26BA, Brand::Nvidia),
    (0x2702, 0x2717, Brand::GeForce),
    (0x2730, 0x2730, Brand::NvidiaRtx),
    (0x2757, 0x2757, Brand::GeForce),
    (0x2770, 0x2770, Brand::NvidiaRtx),
    (0x2782, 0x27A0, Brand::GeForce),
    (0x27B0, 0x27B2, Brand::NvidiaRtx),
    (0x27B6, 0x27B6, Brand::Nvidia),
    (0x27B8, 0x27B8, Brand::Nvidia),
    (0x27BA, 0x27BB, Brand::NvidiaRtx),
    (0x27E0, 0x27E0, Brand::GeForce),
    (0x27FB, 0x27FB, Brand::NvidiaRtx),
    (0x2803, 0x2822, Brand::GeForce),
    (0x2838, 0x2838, Brand::NvidiaRtx),
    (0x2860, 0x28A3, Brand::GeForce),
    (0x28B0, 0x28BB, Brand::NvidiaRtx),
    (0x28E0, 0x28E3, Brand::GeForce),
    (0x28F8, 0x28F8, Brand::NvidiaRtx),
    (0x2901, 0x2941, Brand::Nvidia),
    (0x2B85, 0x2B8C, Brand::GeForce),
    (0x2BB1, 0x2BB9, Brand::NvidiaRtx),
    (0x2C02, 0x2C19, Brand::GeForce),
    (0x2C31, 0x2C39, Brand::NvidiaRtx),
    (0x2C58, 0x2C59, Brand::GeForce),
    (0x2C77, 0x2C79, Brand::NvidiaRtx),
    (0x2D04, 0x2D19, Brand::GeForce),
    (0x2D30, 0x2D39, Brand::NvidiaRtx),
    (0x2D58, 0x2D59, Brand::GeForce),
    (0x2D79, 0x2D79, Brand::NvidiaRtx),
    (0x2D83, 0x2D98, Brand::GeForce),
    (0x2DB8, 0x2DB9, Brand::NvidiaRtx),
    (0x2DD8, 0x2DD8, Brand::GeForce),
    (0x2DF9, 0x2DF9, Brand::NvidiaRtx),
    (0x2F04, 0x2F18, Brand::GeForce),
    (0x2F38, 0x2F38, Brand::NvidiaRtx),
    (0x2F58, 0x2F58, Brand::GeForce),
    (0x3182, 0x31C2, Brand::Nvidia),
];
