use std::fmt::Write as _;

use proptest::prelude::*;

use super::testing::{Made, Piece, Place, container, cubin, places};
use super::*;

/// The file in pieces of these lengths, again and again.
fn streamed(file: &[u8], pieces: &[usize]) -> Binary {
    let mut scanner = Scanner::new(file.len() as u64);
    let mut rest = file;
    for length in pieces.iter().cycle() {
        let (piece, behind) = rest.split_at((*length).clamp(1, rest.len().max(1)).min(rest.len()));
        scanner.push(piece);
        rest = behind;
        if rest.is_empty() {
            break;
        }
    }
    scanner.finish()
}

fn at(file: &[u8]) -> Binary {
    let mut reads = 0;
    let told = read(
        &mut |place, buffer| {
            reads += 1;
            let rest = usize::try_from(place).ok().and_then(|place| file.get(place..)).unwrap_or_default();
            let length = rest.len().min(buffer.len());
            buffer[..length].copy_from_slice(&rest[..length]);
            Ok(length)
        },
        file.len() as u64,
    );
    assert!(reads < 500 + file.len() / 8, "{reads} reads");
    told
}

/// What both ways tell, which is the same.
fn both(file: &[u8]) -> Binary {
    let told = streamed(file, &[usize::MAX]);
    assert_eq!(told, at(file));
    told
}

fn groups(told: &Binary) -> String {
    told.code.iter().flat_map(|code| &code.groups).fold(String::new(), |mut all, group| {
        let _ = write!(all, "{} {} | {}; ", group.containers, group.machine.join(" "), group.ptx.join(" "));
        all
    })
}

fn runtime(told: &Binary) -> Option<String> {
    told.runtime.as_ref().map(ToString::to_string)
}

#[test]
fn what_is_asked_of_the_loader() {
    for strings in [Place::First, Place::Near, Place::Behind] {
        let made = Made {
            needed: vec!["libcudart.so.12", "libtorch_cuda.so", "libc.so.6"],
            search: "$ORIGIN:$ORIGIN/../../nvidia/cudnn/lib:/opt/lib",
            name: "libtorch_python.so",
            strings,
            ..Made::new()
        };
        let told = both(&made.bytes());
        assert_eq!(told.needed, made.needed);
        assert_eq!(told.search, ["$ORIGIN", "$ORIGIN/../../nvidia/cudnn/lib", "/opt/lib"]);
        assert_eq!(told.name.as_deref(), Some("libtorch_python.so"));
        assert_eq!((told.architecture.as_str(), told.head.len(), told.unread), ("amd64", 64, None));
    }
}

#[test]
fn containers_are_grouped_by_what_they_hold() {
    let ptx = Piece { ptx: true, architecture: 120, flags: 0x8011, payload: 96 };
    let exact = Piece { flags: 0x10_0011, ..cubin(90) };
    let family = Piece { flags: 0x20_0011, payload: 100_000, ..cubin(100) };
    let code = [
        container(&[cubin(75), cubin(90)]),
        container(&[exact]),
        container(&[cubin(90), cubin(75)]),
        container(&[cubin(75), family, ptx]),
    ];
    let told = both(&Made { code: code.concat(), ..Made::new() }.bytes());
    assert_eq!(groups(&told), "2 7.5 9.0 | ; 1 7.5 10.0f | 12.0; 1 9.0a | ; ");
    let code = told.code.unwrap();
    assert_eq!((code.ptx_version, code.zstd), (Some((8, 7)), true));
}

/// cuDNN 9.28's engines have some (2026-11).
#[test]
fn containers_among_data_are_not_the_librarys_own_code() {
    let mut made = Made { code: container(&[cubin(90)]), ..Made::new() };
    made.constants.resize(16, 0);
    for n in 0..40 {
        made.constants.extend([container(&[cubin(75)]), vec![n; 32]].concat());
    }
    assert_eq!(groups(&both(&made.bytes())), "1 9.0 | ; ");
    let mut file = made.bytes();
    let sections = usize::try_from(u64_at(&file, 40).unwrap()).unwrap();
    file.truncate(sections);
    assert_eq!(groups(&streamed(&file, &[usize::MAX])), "40 7.5 | ; 1 9.0 | ; ", "nobody can tell");
}

/// cuSPARSELt 0.6.2, which torch 2.5 brings along, has 2,494, one of them no whole one (2026-11).
#[test]
fn thousands_of_containers_among_data_lose_nothing_of_the_code() {
    let mut made = Made { code: container(&[cubin(90)]), ..Made::new() };
    made.constants.resize(16, 0);
    for n in 0..3000_u32 {
        // now and then with an entry that is none
        let mut one = container(&[cubin(80 + n % 10), cubin(75)]);
        if n % 100 == 0 {
            let header = fatbin::CONTAINER + 4;
            one[header..header + 4].copy_from_slice(&[0xff; 4]);
        }
        made.constants.extend([one, vec![7; 32]].concat());
    }
    let told = both(&made.bytes());
    assert_eq!((groups(&told).as_str(), told.unread), ("1 9.0 | ; ", None));
    let mut damaged = container(&[cubin(80)]);
    damaged[fatbin::CONTAINER + 4..fatbin::CONTAINER + 8].copy_from_slice(&[0xff; 4]);
    made.code.extend(damaged);
    assert!(both(&made.bytes()).unread.is_some(), "of the code itself some is lost");
}

/// Made with nvcc 13.5.37 of a kernel of one line (2026-11).
#[test]
fn what_nvcc_writes_is_read() {
    let ptx: &[u8] = include_bytes!("fixtures/ptxonly_75.fatbin");
    let zstd: &[u8] = include_bytes!("fixtures/size_zstd_75_90.fatbin");
    let told = both(&Made { code: ptx.to_vec(), ..Made::new() }.bytes());
    assert_eq!((groups(&told).as_str(), told.code.unwrap().ptx_version), ("1  | 7.5; ", Some((9, 5))));
    let told = both(&Made { code: zstd.to_vec(), ..Made::new() }.bytes());
    assert_eq!((groups(&told).as_str(), told.code.unwrap().zstd), ("1 7.5 9.0 | ; ", true));
}

#[test]
fn a_runtime_that_is_linked_in_tells_its_release() {
    let code = container(&[cubin(90)]);
    for arm in [false, true] {
        let made = Made { arm, code: code.clone(), ..Made::new() };
        assert_eq!(runtime(&both(&made.clone().with_runtime(12_080).bytes())).as_deref(), Some("12.8"));
        let own = Made { arm, name: "libcudart.so.13", ..Made::new() }.with_runtime(13_050);
        assert_eq!(runtime(&both(&own.bytes())).as_deref(), Some("13.5"));
        let machine = if arm { header::Machine::Arm } else { header::Machine::X86 };
        let mut without_text = made.clone().with_runtime(12_080);
        without_text.constants = b"nothing\0".to_vec();
        assert_eq!(runtime(&both(&without_text.bytes())), None);
        let mut thrice = made.clone().with_runtime(12_080);
        thrice.text.extend(places(machine, 12_080));
        assert_eq!(runtime(&both(&thrice.bytes())), None, "chance");
        let two = made.clone().with_runtime(12_080).with_runtime(11_080);
        assert_eq!(runtime(&both(&two.bytes())), None, "which of them?");
        let of_nvidia = Made { name: "libcublas.so.12", ..made.clone() }.with_runtime(12_080);
        assert_eq!(runtime(&both(&of_nvidia.bytes())), None, "it has a version of its own");
        let mut asks = made.with_runtime(12_080);
        asks.needed.push("libcudart.so.12");
        assert_eq!(runtime(&both(&asks.bytes())), None, "it loads another");
    }
}

#[test]
fn the_note_of_a_libcuda_is_found() {
    let json = b"{\"format\":1,\"CUDA version\":\"13.1\",\"driver\":[535,590],\"device\":[1,2]}\0";
    let header = [19u32, u32::try_from(json.len()).unwrap(), 0].map(u32::to_le_bytes).concat();
    let note = [&header[..], b"NVIDIA Corporation\0\0", json].concat();
    let told = both(&Made { note, name: "libcuda.so.1", ..Made::new() }.bytes());
    assert_eq!(told.compat.map(|note| note.cuda.to_string()).as_deref(), Some("13.1"));
}

#[test]
fn what_is_no_program_tells_nothing() {
    for file in [&b""[..], b"#!/bin/sh\n", b"\x7fELF", &[0; 5000]] {
        assert_eq!(both(file), Binary { head: file[..file.len().min(64)].to_vec(), ..Binary::default() });
    }
}

#[test]
fn a_file_that_is_cut_off_says_so() {
    let file = Made { code: container(&[cubin(90)]), ..Made::new() }.bytes();
    let mut scanner = Scanner::new(file.len() as u64);
    scanner.push(&file[..file.len() - 100]);
    assert!(scanner.finish().unread.is_some());
    assert!(at(&file[..file.len() - 100]).unread.is_some());
}

/// One container follows another that is no longer than its header: each is looked at once.
#[test]
fn the_work_grows_with_the_file_alone() {
    let mut file = Made { code: container(&[Piece { payload: 0, ..cubin(90) }]).repeat(40_000), ..Made::new() }.bytes();
    assert_eq!(groups(&both(&file)), "40000 9.0 | ; ");
    // a container that claims the rest of the file, within which others begin
    let start = memchr::memmem::find(&file, &fatbin::MAGIC).unwrap();
    file[start + 8..start + 16].copy_from_slice(&1_000_000u64.to_le_bytes());
    let told = streamed(&file, &[1000]);
    assert!(told.unread.is_some(), "entries that are none");
}

fn real_shape() -> Vec<u8> {
    let ptx = Piece { ptx: true, architecture: 90, flags: 0x11, payload: 70_000 };
    let code = [container(&[cubin(75), ptx]), container(&[cubin(90)]), container(&[ptx])].concat();
    let made = Made { search: "$ORIGIN/../lib", name: "libx.so", code, ..Made::new() };
    let mut made = made.with_runtime(12_040);
    made.text.resize(150_000, 0xcc);
    made.bytes()
}

proptest! {
    #[test]
    fn the_pieces_do_not_matter(pieces in proptest::collection::vec(1usize..90_000, 1..5), behind: bool, arm: bool,
        filling in 0usize..140_000) {
        let code = [container(&[cubin(75)]), container(&[Piece { payload: filling, ..cubin(90) }])].concat();
        let strings = if behind { Place::Behind } else { Place::Near };
        let made = Made { strings, arm, search: "/opt/lib", code, text: vec![0x90; filling], ..Made::new() };
        let file = made.with_runtime(11_080).bytes();
        let told = both(&file);
        prop_assert_eq!(runtime(&told), Some("11.8".to_owned()));
        prop_assert_eq!(groups(&told), "1 7.5 | ; 1 9.0 | ; ");
        prop_assert_eq!(streamed(&file, &pieces), told);
    }

    #[test]
    fn damaged_files_are_read_to_an_end(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        headers in proptest::collection::vec((0usize..400, any::<u8>()), 0..6),
        cut in proptest::option::of(any::<prop::sample::Index>()), pieces in proptest::collection::vec(1usize..70_000, 1..4)) {
        let mut file = real_shape();
        for (place, value) in changes {
            let place = place.index(file.len());
            file[place] = value;
        }
        for (place, value) in headers {
            file[place] = value;
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        let told = streamed(&file, &pieces);
        prop_assert_eq!(&streamed(&file, &[usize::MAX]), &told);
        at(&file);
    }

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        let file = [b"\x7fELF\x02\x01\x01", &bytes[..]].concat();
        streamed(&file, &[7]);
        at(&file);
    }
}
use crate::knowledge::little_endian::u64_at;
