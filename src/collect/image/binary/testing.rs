//! Makes small programs of the shape that linkers write.

use super::header::Machine;
use super::{cudart, fatbin};

/// Where the loader's strings lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::collect::image) enum Place {
    /// In what is loaded first, as linkers put them.
    First,
    /// Before the table, and with it, where patchelf writes them anew.
    Near,
    /// Behind the table.
    Behind,
}

/// What goes into one.
#[derive(Debug, Clone)]
pub(in crate::collect::image) struct Made {
    pub(in crate::collect::image) arm: bool,
    pub(in crate::collect::image) needed: Vec<&'static str>,
    pub(in crate::collect::image) search: &'static str,
    pub(in crate::collect::image) name: &'static str,
    pub(in crate::collect::image) strings: Place,
    pub(in crate::collect::image) text: Vec<u8>,
    pub(in crate::collect::image) constants: Vec<u8>,
    pub(in crate::collect::image) note: Vec<u8>,
    pub(in crate::collect::image) code: Vec<u8>,
}

impl Made {
    pub(in crate::collect::image) fn new() -> Self {
        Self {
            arm: false,
            needed: vec!["libc.so.6"],
            search: "",
            name: "",
            strings: Place::First,
            text: vec![0x90; 200],
            constants: b"nothing\0".to_vec(),
            note: Vec::new(),
            code: Vec::new(),
        }
    }

    /// With a CUDA runtime linked in, as `12080`.
    pub(in crate::collect::image) fn with_runtime(mut self, number: u32) -> Self {
        for _ in 0..2 {
            self.text.resize(self.text.len().next_multiple_of(4) + 64, 0x90);
            self.text.extend(places(if self.arm { Machine::Arm } else { Machine::X86 }, number));
        }
        self.text.extend([0x90; 32]);
        self.constants.extend([cudart::TEXT, b"\0"].concat());
        self
    }

    pub(in crate::collect::image) fn bytes(&self) -> Vec<u8> {
        let mut strings = vec![0];
        let mut entries: Vec<(u64, u64)> = Vec::new();
        let asked = self.needed.iter().map(|name| (1, *name)).chain([(14, self.name), (29, self.search)]);
        for (tag, text) in asked.filter(|(_, text)| !text.is_empty()) {
            entries.push((tag, strings.len() as u64));
            strings.extend([text.as_bytes(), b"\0"].concat());
        }
        let mut file = vec![0; 64 + 5 * 56];
        let mut put = |bytes: &[u8]| {
            file.resize(file.len().next_multiple_of(16), 0);
            let at = file.len();
            file.extend(bytes);
            (at as u64, bytes.len() as u64)
        };
        let note = put(&self.note);
        let early = put(if self.strings == Place::First { &strings } else { b"" });
        let text = put(&self.text);
        let constants = put(&self.constants);
        let table = |strings: u64| {
            let all = entries.iter().copied().chain([(5, strings), (0, 0)]);
            all.flat_map(|(tag, value)| [tag, value]).flat_map(u64::to_le_bytes).collect::<Vec<u8>>()
        };
        let length = table(0).len() as u64;
        let code = put(&self.code);
        let near = put(if self.strings == Place::Near { &strings } else { b"" });
        // written again once it is known where its strings lie
        let dynamic = put(&vec![0; usize::try_from(length).unwrap()]);
        let late = put(if self.strings == Place::Behind { &strings } else { b"" });
        let strings = match self.strings {
            Place::First => early,
            Place::Near => near,
            Place::Behind => late,
        };
        let names = b"\0.nv_fatbin\0.rodata\0.note.cuda.fwd_compatibility\0.shstrtab\0";
        let at_names = put(names);
        let name = |text: &[u8]| u32::try_from(memchr::memmem::find(names, text).unwrap()).unwrap();
        let section = |name: u32, kind: u32, (at, size): (u64, u64)| {
            let numbers = [2, at, at, size, 0, 4, 0].map(u64::to_le_bytes).concat();
            [&name.to_le_bytes()[..], &kind.to_le_bytes(), &numbers].concat()
        };
        let sections = put(&[
            vec![0; 64],
            section(name(b".nv_fatbin"), 1, code),
            section(name(b".rodata"), 1, constants),
            section(name(b".note.cuda"), 7, note),
            section(name(b".shstrtab"), 3, at_names),
        ]
        .concat());
        let (at, _) = dynamic;
        let at = usize::try_from(at).unwrap();
        let address = |place: u64| place + 0x40_0000;
        let bytes = table(address(strings.0));
        file[at..at + bytes.len()].copy_from_slice(&bytes);
        let whole = file.len() as u64;
        let segment = |kind: u32, flags: u32, at: u64, size: u64| {
            let numbers = [at, address(at), address(at), size, size, 16].map(u64::to_le_bytes).concat();
            [&kind.to_le_bytes()[..], &flags.to_le_bytes(), &numbers].concat()
        };
        let programs = [
            segment(1, 4, 0, text.0),
            segment(1, 5, text.0, constants.0 - text.0),
            segment(1, 4, constants.0, near.0 - constants.0),
            segment(1, 6, near.0, whole - near.0),
            segment(2, 6, dynamic.0, dynamic.1),
        ]
        .concat();
        file[64..64 + programs.len()].copy_from_slice(&programs);
        let machine: u16 = if self.arm { 183 } else { 62 };
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file[16..20].copy_from_slice(&[3u16, machine].map(u16::to_le_bytes).concat());
        file[32..40].copy_from_slice(&64u64.to_le_bytes());
        file[40..48].copy_from_slice(&sections.0.to_le_bytes());
        file[52..64].copy_from_slice(&[64u16, 56, 5, 64, 5, 4].map(u16::to_le_bytes).concat());
        file
    }
}

/// As compilers write a function that gives the runtime's number out.
pub(super) fn places(machine: Machine, number: u32) -> Vec<u8> {
    match machine {
        Machine::Arm => {
            [0x5280_0000 | number << 5 | 2, 0xb900_0002, 0x5280_0000, 0xd65f_03c0].map(u32::to_le_bytes).concat()
        }
        _ => [b"\xc7\x07", &number.to_le_bytes()[..], b"\x31\xc0\xc3"].concat(),
    }
}

/// An entry of a container.
#[derive(Debug, Clone, Copy)]
pub(in crate::collect::image) struct Piece {
    pub(in crate::collect::image) ptx: bool,
    pub(in crate::collect::image) architecture: u32,
    pub(in crate::collect::image) flags: u64,
    pub(in crate::collect::image) payload: usize,
}

/// Machine code for an architecture.
pub(in crate::collect::image) const fn cubin(architecture: u32) -> Piece {
    Piece { ptx: false, architecture, flags: 0x11, payload: 200 }
}

/// A container with such entries.
pub(in crate::collect::image) fn container(pieces: &[Piece]) -> Vec<u8> {
    let entry = |piece: &Piece| {
        let kind: u16 = if piece.ptx { 1 } else { 2 };
        let mut header = [kind, 0x101].map(u16::to_le_bytes).concat();
        header.extend(64u32.to_le_bytes());
        header.extend((piece.payload as u64).to_le_bytes());
        header.extend([0; 8]);
        header.extend([7u16, 8].map(u16::to_le_bytes).concat());
        header.extend(piece.architecture.to_le_bytes());
        header.extend([0; 8]);
        header.extend(piece.flags.to_le_bytes());
        header.resize(64 + piece.payload, 0x5a);
        header
    };
    let entries: Vec<u8> = pieces.iter().flat_map(entry).collect();
    let header = [&fatbin::MAGIC[..], &[1, 0, 16, 0], &(entries.len() as u64).to_le_bytes()].concat();
    let mut all = [header, entries].concat();
    all.resize(all.len().next_multiple_of(8), 0);
    all
}
