//! Small files that ask for much memory: each is refused, or stays within a small multiple of its size.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write;

use loxia_model::parse;

/// Counts what each thread holds, and the most it held.
struct Counting;

thread_local! {
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn note(change: isize) {
    // A thread that ends frees its last blocks after its counters are gone.
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + change, most.max(now + change)));
    });
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: the caller's promise is the same as ours.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most memory `work` held at once, in bytes.
fn most_memory<R>(work: impl FnOnce() -> R) -> (R, usize) {
    let before = HELD.with(|held| {
        let (now, _) = held.get();
        held.set((now, now));
        now
    });
    let result = work();
    (result, HELD.with(|held| held.get().1 - before) as usize)
}

/// A zip archive with `data.pkl`, stored or deflated.
fn archive(pickle: &[u8], deflate: bool) -> Vec<u8> {
    let mut packed = pickle.to_vec();
    if deflate {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(pickle).unwrap();
        packed = encoder.finish().unwrap();
    }
    let method = if deflate { 8_u16 } else { 0 }.to_le_bytes();
    let lengths = [(packed.len() as u32).to_le_bytes(), (pickle.len() as u32).to_le_bytes()].concat();
    let name = b"archive/data.pkl";
    let mut file = b"PK\x03\x04\x14\0\0\0".to_vec();
    file.extend(method);
    file.extend([0; 8]);
    file.extend(&lengths);
    file.extend([name.len() as u8, 0, 0, 0]);
    file.extend(name);
    file.extend(&packed);
    let start = file.len() as u32;
    file.extend(b"PK\x01\x02\x14\0\x14\0\0\0");
    file.extend(method);
    file.extend([0; 8]);
    file.extend(&lengths);
    file.extend([name.len() as u8, 0]);
    file.extend([0; 16]);
    file.extend(name);
    let size = file.len() as u32 - start;
    file.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    file.extend(size.to_le_bytes());
    file.extend(start.to_le_bytes());
    file.extend([0; 2]);
    file
}

#[test]
fn a_compressed_pickle_is_refused_before_it_is_unpacked() {
    let mut pickle = b"\x80\x02".to_vec();
    pickle.resize(20_000_000, b'N');
    let file = archive(&pickle, true);
    assert!(file.len() < 25_000);
    let (read, memory) = most_memory(|| parse::torch_file(&file));
    assert!(read.unwrap_err().to_string().contains("is compressed"));
    assert!(memory < 1 << 16, "{memory}");
    let file = archive(&pickle, false);
    let (read, memory) = most_memory(|| parse::torch_file(&file));
    assert!(read.unwrap_err().to_string().contains("at most 16777216 are read"));
    assert!(memory < 1 << 16, "{memory}");
}

#[test]
fn long_names_and_many_values_are_refused() {
    let refused = |program: Vec<u8>, part: &str| {
        let (read, memory) = most_memory(|| parse::pickle(&program));
        let message = read.unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
        assert!(memory < 80 << 20, "{memory}");
    };
    refused([b"\x80\x02cos\n", "a".repeat(130_000).as_bytes(), b"\n."].concat(), "a name of 130003 bytes");
    for instruction in [&b"N"[..], b"(", b"]", b"K\x01", b"]\x94", b")", b"2"] {
        refused([b"N", instruction.repeat(1 << 22).as_slice()].concat(), "a bomb");
    }
    // A class named by two recalled texts, again and again.
    let text = [b"X\0\x01\0\0", "a".repeat(256).as_bytes()].concat();
    let names = [&text[..], b"q\x00", &text, b"q\x01", &b"h\x00h\x01\x93".repeat(10_000)].concat();
    refused(names, "a bomb");
}

#[test]
fn repeated_calls_share_their_names_and_sizes() {
    let name = "a".repeat(1000);
    let class = [b"\x80\x02cos\n", name.as_bytes(), b"\nq\x00)q\x01"].concat();
    let size = [b"\x80\x02ctorch\nSize\nq\x00(", "K\x01".repeat(5000).as_bytes(), b"t\x85q\x01"].concat();
    for (start, again) in [
        (&class, &b"h\x00h\x01R0"[..]),
        (&class, b"h\x00Nb0"),
        (&class, b"h\x00h\x01R0"),
        (&size, b"h\x00h\x01R0"),
    ] {
        let program = [start, again.repeat(40_000).as_slice(), b"}."].concat();
        let (read, memory) = most_memory(|| parse::pickle(&program));
        assert!(read.is_ok(), "{read:?}");
        assert!(memory < 24 * program.len(), "{memory} bytes for a program of {}", program.len());
    }
}

#[test]
fn one_name_for_many_tensors_is_refused() {
    let text = [b"X\0\x04\0\0", "a".repeat(1024).as_bytes()].concat();
    let class = b"cos\nsystem\n)R";
    let program =
        [b"\x80\x02}q\x00", &text[..], b"q\x01", class, b"q\x02s", &b"h\x01h\x02s".repeat(50_000), b"."]
            .concat();
    let (read, memory) = most_memory(|| parse::torch_file(&archive(&program, false)).map(drop));
    assert!(read.unwrap_err().to_string().contains("twice"));
    assert!(memory < 24 * program.len(), "{memory}");
}
