//! Finding separators: 64 bytes at a time into one bit mask, then bits into positions.

/// Bits set where `block` holds `byte`, lowest bit first.
type Mask = unsafe fn(&[u8; 64], u8) -> u64;

/// Writes the start of every cell of `line` into `starts` and returns the number of cells.
///
/// Cell `i` is `line[starts[i]..starts[i + 1] - 1]`; the slot behind the last cell is written too.
/// `line` must be shorter than 4 GiB, which the line index guarantees.
pub fn cell_starts(line: &[u8], separator: u8, starts: &mut Vec<u32>) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("popcnt")
        {
            // SAFETY: the features the function is compiled for were detected just above.
            return unsafe { x86::starts_avx2(line, separator, starts) };
        }
    }
    starts_with(line, separator, starts, mask_portable)
}

/// The body shared by all instruction sets; `mask` is inlined into each.
#[allow(
    clippy::inline_always,
    reason = "must be compiled with the instruction set of its caller"
)]
#[inline(always)]
fn starts_with(line: &[u8], separator: u8, starts: &mut Vec<u32>, mask: Mask) -> usize {
    let mut count = 1;
    if starts.len() < 130 {
        starts.resize(130, 0);
    }
    starts[0] = 0;
    let mut base = 1_u32;
    let mut rest = line;
    while let Some((block, behind)) = rest.split_first_chunk::<64>() {
        // SAFETY: the caller was compiled for, and is only called with, the features `mask` needs.
        let bits = unsafe { mask(block, separator) };
        count = push_bits(bits, base, count, starts);
        base += 64;
        rest = behind;
    }
    if !rest.is_empty() {
        let mut block = [0_u8; 64];
        block[..rest.len()].copy_from_slice(rest);
        // SAFETY: as above.
        let bits = unsafe { mask(&block, separator) } & (u64::MAX >> (64 - rest.len()));
        count = push_bits(bits, base, count, starts);
    }
    starts[count] = u32::try_from(line.len() + 1).unwrap_or(u32::MAX);
    count
}

/// Appends `base + i` for every set bit `i`. Writes eight slots without looking, as counting first costs more.
#[allow(
    clippy::inline_always,
    reason = "must be compiled with the instruction set of its caller"
)]
#[inline(always)]
fn push_bits(mut bits: u64, base: u32, count: usize, starts: &mut Vec<u32>) -> usize {
    let found = bits.count_ones() as usize;
    if starts.len() < count + 66 {
        starts.resize(2 * (count + 66), 0);
    }
    let out = &mut starts[count..count + 64];
    for slot in &mut out[..8] {
        *slot = base + bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
    }
    if found > 8 {
        for slot in &mut out[8..16] {
            *slot = base + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
        }
        for slot in &mut out[16..] {
            if bits == 0 {
                break;
            }
            *slot = base + bits.trailing_zeros();
            bits &= bits - 1;
        }
    }
    count + found
}

/// Eight bytes at a time in a general register.
fn mask_portable(block: &[u8; 64], byte: u8) -> u64 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let pattern = u64::from(byte) * 0x0101_0101_0101_0101;
    let mut mask = 0;
    let mut rest = block.as_slice();
    let mut shift = 0;
    while let Some((word, behind)) = rest.split_first_chunk::<8>() {
        let x = u64::from_le_bytes(*word) ^ pattern;
        // The top bit of each byte is set where the byte is zero; no carry crosses bytes.
        let zero = !(((x & LOW) + LOW) | x | LOW);
        mask |= ((zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << shift;
        shift += 8;
        rest = behind;
    }
    mask
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8,
    };

    fn bits(mask: i32) -> u64 {
        u64::from(u32::from_ne_bytes(mask.to_ne_bytes()))
    }

    #[allow(
        clippy::cast_ptr_alignment,
        reason = "the load used is the one for unaligned addresses"
    )]
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn mask_avx2(block: &[u8; 64], byte: u8) -> u64 {
        // SAFETY: both loads stay inside the 64 bytes of `block`.
        unsafe {
            let pattern = _mm256_set1_epi8(i8::from_ne_bytes([byte]));
            let pointer = block.as_ptr().cast::<__m256i>();
            let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256(pointer), pattern));
            let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(
                _mm256_loadu_si256(pointer.add(1)),
                pattern,
            ));
            bits(low) | bits(high) << 32
        }
    }

    #[target_feature(enable = "avx2,bmi1,popcnt")]
    pub(super) unsafe fn starts_avx2(line: &[u8], separator: u8, starts: &mut Vec<u32>) -> usize {
        super::starts_with(line, separator, starts, mask_avx2)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(line: &[u8], separator: u8) -> Vec<u32> {
        let mut all = vec![0];
        all.extend(
            (0_u32..)
                .zip(line)
                .filter(|(_, b)| **b == separator)
                .map(|(i, _)| i + 1),
        );
        all
    }

    proptest! {
        #[test]
        fn every_instruction_set_finds_the_same_cells(line in prop::collection::vec(prop_oneof![Just(b','), any::<u8>()], 0..400)) {
            let mut starts = Vec::new();
            let count = cell_starts(&line, b',', &mut starts);
            prop_assert_eq!(&starts[..count], &plain(&line, b',')[..]);
            prop_assert_eq!(starts[count] as usize, line.len() + 1);
            let count = starts_with(&line, b',', &mut starts, mask_portable);
            prop_assert_eq!(&starts[..count], &plain(&line, b',')[..]);
        }
    }
}
