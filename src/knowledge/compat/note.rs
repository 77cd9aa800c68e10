//! What a libcuda for forward compatibility says of itself.

use serde::Deserialize;

use crate::model::image::CompatNote;

/// More than any such text has.
pub(super) const LONGEST: usize = 4096;

/// As in libcuda 575.57.08, 590.44.01 and Orin's 13.2.1 (fixtures of NVIDIA's container toolkit at d34b3046,
/// read 2026-11); the last has neither list.
#[derive(Deserialize)]
struct Text {
    // Its reader in the toolkit takes the keys in any case.
    #[serde(rename = "CUDA version", alias = "CUDA Version", alias = "cuda version")]
    cuda: String,
    #[serde(default)]
    driver: Vec<u32>,
    #[serde(default)]
    device: Vec<u32>,
}

/// Reads the JSON of `.note.cuda.fwd_compatibility`, with the NULs behind it. `None`: it is not what it should be.
pub fn parse_note(json: &[u8]) -> Option<CompatNote> {
    let end = json.iter().rposition(|byte| *byte != 0)? + 1;
    let text: Text = serde_json::from_slice(json.get(..end).filter(|text| text.len() <= LONGEST)?).ok()?;
    Some(CompatNote { cuda: text.cuda.parse().ok()?, branches: text.driver, brands: text.device })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn real_notes_are_read() {
        let text = br#"{"format":1,"CUDA version":"12.9","driver":[535,550,560,565,570,575],"device":[1,2,7,8,9,10,11,12,13,14]}"#;
        let mut with_nuls = text.to_vec();
        with_nuls.extend([0; 3]);
        let note = parse_note(&with_nuls).unwrap();
        assert_eq!(note.cuda.to_string(), "12.9");
        assert_eq!(note.branches, [535, 550, 560, 565, 570, 575]);
        assert_eq!(note.brands, super::super::BRANDS);
        assert_eq!(parse_note(text), Some(note));
        let orin = parse_note(b"{\"format\":1,\"CUDA version\":\"13.2\"}\0\0\0\0\0\0\0").unwrap();
        assert_eq!((orin.branches.len(), orin.brands.len()), (0, 0));
    }

    #[test]
    fn what_is_no_note_is_none() {
        let long = format!("{{\"CUDA version\":\"12.9\",\"x\":\"{}\"}}", "x".repeat(LONGEST));
        for bad in [
            "",
            "\0\0",
            "{\"format\":1,\"CUDA version\":\"13.2\",}",
            "{}",
            "[]",
            "{\"CUDA version\":13.2}",
            "{\"CUDA version\":\"x\"}",
            "{\"CUDA version\":\"13.2\",\"driver\":[-1]}",
            &long,
        ] {
            assert_eq!(parse_note(bad.as_bytes()), None, "{bad:.60}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_note(&bytes);
        }
    }
}
