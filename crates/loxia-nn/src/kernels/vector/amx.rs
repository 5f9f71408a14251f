//! AMX: eight registers of 16 rows of 64 bytes, and products of whole registers in one instruction, of 8-bit integers or
//! of bfloat16 numbers.

use std::arch::asm;
use std::arch::x86_64::__cpuid_count;
use std::marker::PhantomData;
use std::sync::OnceLock;

use super::matrix::{MatrixUnit, PAIRED, PANEL, SIDE, Sums};

/// Proof that the machine has AMX with both kinds of products and that the system lets this process use it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amx(());

impl Amx {
    /// The proof, if it can be given; the first call asks the system for its leave.
    pub(in crate::kernels) fn new() -> Option<Self> {
        static USABLE: OnceLock<bool> = OnceLock::new();
        USABLE.get_or_init(|| present() && permitted()).then_some(Amx(()))
    }
}

/// Whether the processor has tiles, and products of 8-bit integers and of bfloat16 numbers on them.
fn present() -> bool {
    const BF16_TILES_INT8: u32 = 1 << 22 | 1 << 24 | 1 << 25;
    let highest = __cpuid_count(0, 0).eax;
    highest >= 7 && __cpuid_count(7, 0).edx & BF16_TILES_INT8 == BF16_TILES_INT8 && usual_palette(highest)
}

/// Whether the first palette is the one used here. Some virtual machines have AMX and keep quiet about palettes; there
/// has only ever been this one.
fn usual_palette(highest: u32) -> bool {
    const PALETTES: u32 = 0x1d;
    if highest < PALETTES {
        return true;
    }
    let palette = __cpuid_count(PALETTES, 1);
    let (row_bytes, names, rows) = (palette.ebx & 0xffff, palette.ebx >> 16, palette.ecx & 0xffff);
    palette.ebx == 0 || (row_bytes as usize >= ROW_BYTES && names >= 8 && rows as usize >= SIDE)
}

/// Asks Linux for the leave to use tiles, which holds for all threads of the process.
#[cfg(target_os = "linux")]
fn permitted() -> bool {
    const REQUEST: libc::c_int = 0x1023;
    const TILE_DATA: libc::c_ulong = 18;
    // SAFETY: this call takes two numbers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST, TILE_DATA) == 0 }
}

/// How to ask another system is not known here.
#[cfg(not(target_os = "linux"))]
fn permitted() -> bool {
    false
}

/// Bytes in a row of a register.
const ROW_BYTES: usize = 4 * SIDE;

/// What the registers look like: all eight of full size.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

const CONFIGURATION: Configuration = {
    let (mut row_bytes, mut rows) = ([0; 16], [0; 16]);
    let mut register = 0;
    while register < 8 {
        row_bytes[register] = ROW_BYTES as u16;
        rows[register] = SIDE as u8;
        register += 1;
    }
    Configuration { palette: 1, start_row: 0, reserved: [0; 14], row_bytes, rows }
};

/// The registers set up for this thread. They are given back when this is dropped: a thread that keeps them has
/// 8 KiB more to be saved whenever another one takes its processor.
///
/// The compiler knows nothing of these registers, so what they hold stays from one piece of assembly to the next.
pub(in crate::kernels) struct Registers(PhantomData<*const ()>);

impl Amx {
    /// Sets the registers up.
    #[inline(always)]
    pub(in crate::kernels) fn registers(self) -> Registers {
        // SAFETY: `self` exists only where these instructions may be used; the configuration is a valid one.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &CONFIGURATION, options(nostack, readonly, preserves_flags));
        }
        Registers(PhantomData)
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        // SAFETY: `Amx` was there when this was made.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) }
    }
}

/// Sums of the first 16 rows are in registers 0 to 2, those of the next in 3 to 5; codes go through 6, weights
/// through 7.
impl MatrixUnit for Registers {
    #[inline(always)]
    fn start(&mut self) {
        // SAFETY: the registers are set up on this thread.
        unsafe {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "tilezero tmm4",
                "tilezero tmm5",
                options(nostack, nomem, preserves_flags)
            );
        }
    }

    #[inline(always)]
    unsafe fn add(&mut self, rows: usize, codes: *const u32, depth: usize, panel: &[u32; SIDE * PANEL]) {
        // SAFETY: the registers are set up on this thread, the caller vouches for the codes, and a panel's part is
        // 16 rows of three times 64 bytes.
        unsafe {
            if rows > SIDE {
                asm!(
                    "tileloadd tmm7, [{panel} + {wide}*1]",
                    "tileloadd tmm6, [{upper} + {stride}*1]",
                    "tdpbusd tmm0, tmm6, tmm7",
                    "tileloadd tmm6, [{lower} + {stride}*1]",
                    "tdpbusd tmm3, tmm6, tmm7",
                    "tileloadd tmm7, [{panel} + {wide}*1 + 64]",
                    "tdpbusd tmm4, tmm6, tmm7",
                    "tileloadd tmm6, [{upper} + {stride}*1]",
                    "tdpbusd tmm1, tmm6, tmm7",
                    "tileloadd tmm7, [{panel} + {wide}*1 + 128]",
                    "tdpbusd tmm2, tmm6, tmm7",
                    "tileloadd tmm6, [{lower} + {stride}*1]",
                    "tdpbusd tmm5, tmm6, tmm7",
                    upper = in(reg) codes,
                    lower = in(reg) codes.add(SIDE * depth),
                    panel = in(reg) panel,
                    stride = in(reg) 4 * depth,
                    wide = in(reg) 4 * PANEL,
                    options(nostack, readonly, preserves_flags),
                );
            } else {
                asm!(
                    "tileloadd tmm6, [{codes} + {stride}*1]",
                    "tileloadd tmm7, [{panel} + {wide}*1]",
                    "tdpbusd tmm0, tmm6, tmm7",
                    "tileloadd tmm7, [{panel} + {wide}*1 + 64]",
                    "tdpbusd tmm1, tmm6, tmm7",
                    "tileloadd tmm7, [{panel} + {wide}*1 + 128]",
                    "tdpbusd tmm2, tmm6, tmm7",
                    codes = in(reg) codes,
                    panel = in(reg) panel,
                    stride = in(reg) 4 * depth,
                    wide = in(reg) 4 * PANEL,
                    options(nostack, readonly, preserves_flags),
                );
            }
        }
    }

    #[inline(always)]
    fn write(&mut self, rows: usize, sums: &mut Sums) {
        // SAFETY: the registers are set up on this thread, and there is room for the sums of 32 rows.
        unsafe {
            asm!(
                "tilestored [{sums} + {wide}*1], tmm0",
                "tilestored [{sums} + {wide}*1 + 64], tmm1",
                "tilestored [{sums} + {wide}*1 + 128], tmm2",
                sums = in(reg) &mut *sums,
                wide = in(reg) 4 * PANEL,
                options(nostack, preserves_flags),
            );
            if rows > SIDE {
                asm!(
                    "tilestored [{sums} + {wide}*1], tmm3",
                    "tilestored [{sums} + {wide}*1 + 64], tmm4",
                    "tilestored [{sums} + {wide}*1 + 128], tmm5",
                    sums = in(reg) &mut sums.0[SIDE],
                    wide = in(reg) 4 * PANEL,
                    options(nostack, preserves_flags),
                );
            }
        }
    }

    #[inline(always)]
    fn multiply_halves(
        &mut self,
        rows: &[u16],
        stride: usize,
        panel: &[u32],
        out: &mut [f32],
        out_stride: usize,
    ) {
        let depth = 2 * panel.len() / PAIRED;
        assert!(depth > 0 && depth.is_multiple_of(2 * SIDE) && panel.len() == depth / 2 * PAIRED);
        assert!(rows.len() >= (SIDE - 1) * stride + depth && out.len() >= (SIDE - 1) * out_stride + PAIRED);
        // SAFETY: the registers are set up on this thread. Each step reads 64 bytes of 16 rows and 16 rows of twice 64
        // bytes of the panel, and `depth / 32` steps both to their ends; 16 rows of twice 64 bytes are written.
        unsafe {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "2:",
                "tileloadd tmm2, [{rows} + {stride}*1]",
                "tileloadd tmm3, [{panel} + {wide}*1]",
                "tdpbf16ps tmm0, tmm2, tmm3",
                "tileloadd tmm4, [{panel} + {wide}*1 + 64]",
                "tdpbf16ps tmm1, tmm2, tmm4",
                "add {rows}, 64",
                "add {panel}, 2048",
                "dec {steps}",
                "jnz 2b",
                "tilestored [{out} + {out_stride}*1], tmm0",
                "tilestored [{out} + {out_stride}*1 + 64], tmm1",
                rows = inout(reg) rows.as_ptr() => _,
                panel = inout(reg) panel.as_ptr() => _,
                steps = inout(reg) depth / (2 * SIDE) => _,
                stride = in(reg) 2 * stride,
                wide = in(reg) 4 * PAIRED,
                out = in(reg) out.as_mut_ptr(),
                out_stride = in(reg) 4 * out_stride,
                options(nostack),
            );
        }
    }
}
