// SPDX-License-Identifier: GPL-2.0-only
//! No address in the BPF object is computed from an OR of two registers. The compiler turns a sum
//! into an OR where no bit can carry. Of an OR a verifier knows no bound but the next power of two,
//! so a table with rows for 12 CPUs would not load. `masked` in src/bpf/policy/port.h and
//! `stats_of_cpu` in src/bpf/port.bpf.h prevent it. ORs with constants are not followed: most of
//! them choose one of two offsets.

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::collections::{BTreeMap, BTreeSet};

/// One instruction of BPF (kernel: Documentation/bpf/standardization/instruction-set.rst).
#[derive(Clone, Copy)]
struct Insn {
    op: u8,
    dst: i16,
    src: i16,
    off: i16,
    imm: i32,
}

impl Insn {
    fn read(bytes: &[u8]) -> Insn {
        Insn {
            op: bytes[0],
            dst: i16::from(bytes[1] & 15),
            src: i16::from(bytes[1] >> 4),
            off: i16::from_le_bytes([bytes[2], bytes[3]]),
            imm: i32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
        }
    }

    fn class(self) -> u8 {
        self.op & 7
    }

    fn operation(self) -> u8 {
        self.op & 0xf0
    }

    fn of_registers(self) -> bool {
        self.op & 8 != 0
    }
}

const LOAD: u8 = 1;
const STORES: [u8; 2] = [2, 3];
const ARITHMETIC: [u8; 2] = [4, 7];
const JUMP32: u8 = 6;
const JUMPS: [u8; 2] = [5, JUMP32];
const LOAD_64_BITS: u8 = 0x18;
const ATOMIC: u8 = 0xc0;
const STACK: i16 = 10;

/// What holds an OR, or what was computed from one: registers by their number, slots of the stack
/// by their offset, which is negative.
type Tainted = BTreeSet<i16>;

fn set(tainted: &mut Tainted, place: i16, is: bool) {
    if is {
        tainted.insert(place);
    } else {
        tainted.remove(&place);
    }
}

fn compute(insn: Insn, tainted: &mut Tainted) {
    const ADD: u8 = 0x00;
    const SUB: u8 = 0x10;
    const MUL: u8 = 0x20;
    const OR: u8 = 0x40;
    const AND: u8 = 0x50;
    const SHIFT_LEFT: u8 = 0x60;
    const SHIFT_RIGHT: [u8; 2] = [0x70, 0xc0];
    const MOVE: u8 = 0xb0;
    let dst = tainted.contains(&insn.dst);
    let src = insn.of_registers() && tainted.contains(&insn.src);
    let is = match insn.operation() {
        OR => dst || insn.of_registers(),
        AND => dst && src,
        MOVE => src,
        ADD | SUB | MUL => dst || src,
        SHIFT_LEFT => dst,
        // By 32 and less an extension of 32 bits; by more it gives a bound.
        shift if SHIFT_RIGHT.contains(&shift) => dst && !insn.of_registers() && insn.imm <= 32,
        // A rest, a quotient, a bit of it: no longer an index made by this OR.
        _ => false,
    };
    set(tainted, insn.dst, is);
}

/// Whether the instruction uses a tainted address; changes what is tainted after it.
fn execute(insn: Insn, tainted: &mut Tainted) -> bool {
    let class = insn.class();
    let mut bad = false;
    if insn.op == LOAD_64_BITS {
        tainted.remove(&insn.dst);
    } else if ARITHMETIC.contains(&class) {
        compute(insn, tainted);
    } else if class == LOAD {
        bad = tainted.contains(&insn.src);
        let slot = insn.src == STACK && tainted.contains(&insn.off);
        set(tainted, insn.dst, slot);
    } else if STORES.contains(&class) {
        bad = tainted.contains(&insn.dst);
        if insn.dst == STACK {
            let value = class == STORES[1] && tainted.contains(&insn.src);
            set(tainted, insn.off, value);
        }
        if insn.op & 0xe0 == ATOMIC {
            tainted.remove(&insn.src);
        }
    } else if is_call(insn) {
        (0..6).for_each(|register| set(tainted, register, false));
    }
    bad
}

fn is_call(insn: Insn) -> bool {
    JUMPS.contains(&insn.class()) && insn.operation() == 0x80
}

fn next(at: usize, insn: Insn) -> Vec<usize> {
    let jump = |distance: i64| (at as i64 + 1 + distance) as usize;
    match insn.operation() {
        _ if insn.op == LOAD_64_BITS => vec![at + 2],
        _ if !JUMPS.contains(&insn.class()) => vec![at + 1],
        0x00 if insn.class() == JUMP32 => vec![jump(i64::from(insn.imm))],
        0x00 => vec![jump(i64::from(insn.off))],
        0x80 => vec![at + 1],
        0x90 => vec![],
        _ => vec![at + 1, jump(i64::from(insn.off))],
    }
}

/// The instructions of a function that use an address which an OR of two registers went into.
fn addresses_of_ors(code: &[Insn]) -> BTreeSet<usize> {
    let mut before: BTreeMap<usize, Tainted> = BTreeMap::from([(0, Tainted::new())]);
    let mut todo = vec![0];
    let mut bad = BTreeSet::new();
    while let Some(at) = todo.pop() {
        let mut tainted = before[&at].clone();
        if execute(code[at], &mut tainted) {
            bad.insert(at);
        }
        for to in next(at, code[at]) {
            let known = before.contains_key(&to);
            let there = before.entry(to).or_default();
            if !known || !tainted.is_subset(there) {
                there.extend(&tainted);
                todo.push(to);
            }
        }
    }
    bad
}

fn functions(object: &[u8]) -> Vec<(String, Vec<Insn>)> {
    let file = object::File::parse(object).unwrap();
    let functions = file
        .symbols()
        .filter(|s| s.kind() == SymbolKind::Text && s.size() > 0);
    let code = |symbol: &object::Symbol| {
        let section = file.section_by_index(symbol.section_index()?).ok()?;
        let data = section.data().ok()?;
        let bytes = data
            .get(symbol.address() as usize..)?
            .get(..symbol.size() as usize)?;
        Some(bytes.chunks_exact(8).map(Insn::read).collect())
    };
    functions
        .map(|s| (s.name().unwrap().to_string(), code(&s).unwrap()))
        .collect()
}

#[test]
fn no_index_is_an_or() {
    for object in [
        &include_bytes!(concat!(env!("OUT_DIR"), "/bpf.bpf.o"))[..],
        include_bytes!(concat!(env!("OUT_DIR"), "/test.bpf.o")),
    ] {
        let all = functions(object);
        assert!(all.len() > 20, "functions: {}", all.len());
        for (name, code) in all {
            let bad = addresses_of_ors(&code);
            assert!(bad.is_empty(), "{name}: instructions {bad:?}");
        }
    }
}

/// Words of a program, each an opcode and its registers (destination, source, offset, immediate).
fn program(words: &[(u8, i16, i16, i16, i32)]) -> Vec<Insn> {
    let insn = |&(op, dst, src, off, imm)| Insn {
        op,
        dst,
        src,
        off,
        imm,
    };
    words.iter().map(insn).collect()
}

#[test]
fn an_index_that_is_an_or_is_found() {
    const OR: (u8, i16, i16, i16, i32) = (0x4f, 1, 2, 0, 0);
    const TIMES_8: (u8, i16, i16, i16, i32) = (0x67, 1, 0, 0, 3);
    const EXTEND: (u8, i16, i16, i16, i32) = (0x67, 1, 0, 0, 32);
    const TRUNCATE: (u8, i16, i16, i16, i32) = (0x77, 1, 0, 0, 29);
    const ADD: (u8, i16, i16, i16, i32) = (0x0f, 3, 1, 0, 0);
    const READ: (u8, i16, i16, i16, i32) = (0x79, 0, 3, 0, 0);
    const EXIT: (u8, i16, i16, i16, i32) = (0x95, 0, 0, 0, 0);
    const MASK: (u8, i16, i16, i16, i32) = (0x57, 1, 0, 0, 63);
    const SPILL: (u8, i16, i16, i16, i32) = (0x7b, 10, 1, -8, 0);
    const FILL: (u8, i16, i16, i16, i32) = (0x79, 1, 10, -8, 0);
    const CALL: (u8, i16, i16, i16, i32) = (0x85, 0, 0, 0, 1);
    let skips_one = (0x15, 5, 0, 1, 0);
    for (words, bad) in [
        (vec![OR, TIMES_8, ADD, READ, EXIT], vec![3]),
        (vec![OR, EXTEND, TRUNCATE, ADD, READ, EXIT], vec![4]),
        (vec![OR, MASK, TIMES_8, ADD, READ, EXIT], vec![]),
        (vec![TIMES_8, ADD, READ, EXIT], vec![]),
        // It survives on the stack, and on one of two ways.
        (vec![OR, SPILL, CALL, FILL, ADD, READ, EXIT], vec![5]),
        (vec![OR, skips_one, MASK, ADD, READ, EXIT], vec![4]),
    ] {
        assert_eq!(addresses_of_ors(&program(&words)), BTreeSet::from_iter(bad));
    }
}
