//! The forward transform.
//!
//! Growth, in units of p: a butterfly adds at most 1/2 plus what rounding the quotient costs. Small primes start
//! below 4 and stay below 16 without any reduction. At p ≈ 2^50 products take factors of up to 4 and err by |x|/8. There
//! a transform starts below 15/8 and the first pass ends below 3.5. Then every second pass balances the two entries that no
//! product reduces: it ends below 2.2 and the next one below 3.8, and nothing but the very last sums, below 4.8, is larger.

use super::ends::{Sink, Source};
use super::twiddles::INNER;
use super::{FmaNtt, TURN};
use crate::Ahead;
use crate::simd::lanes::{LINE, Lanes, Soon};
use crate::simd::prime::{Factor, Prime};

/// Cache lines that each step of a pass asks for: with a step in 16 cycles, a little less than memory gives.
const LINES: usize = 1;

/// The same for passes over all pieces, which ask for what the last cache has.
const OUTER: usize = 4;

/// The layers that pieces share: coefficients of `source` in order to pieces for [`finish`].
///
/// Each stage is a function of its own, so that what depends on neither end is compiled once.
pub(super) fn begin<S: Lanes, const LARGE: bool>(
    plan: &FmaNtt<S>,
    out: &mut [u64],
    source: &impl Source<S>,
    ahead: &mut Ahead<'_>,
) {
    let mut m = first::<S, LARGE>(plan, out, source);
    let mut balance = LARGE;
    while plan.n / m > plan.piece {
        let soon = ahead.take(OUTER * LINE * plan.n / (4 * S::WIDTH));
        passes::<S, OUTER>(plan, out, (m, 0), balance, soon);
        balance = LARGE && !balance;
        m *= 4;
    }
}

/// The other layers of piece `i`: to values, bit-reversed, as `sink` wants them.
pub(super) fn finish<S: Lanes, const LARGE: bool>(
    plan: &FmaNtt<S>,
    i: usize,
    piece: &mut [u64],
    sink: &impl Sink<S>,
    ahead: &mut Ahead<'_>,
) {
    let m = plan.n / plan.piece;
    // As many passes as there are pairs of layers came before.
    let mut balance = LARGE && m.trailing_zeros().div_ceil(2) % 2 == 1;
    let mut sub = 1;
    while piece.len() / sub > 8 {
        let soon = ahead.take(LINES * LINE * piece.len() / (4 * S::WIDTH));
        passes::<S, LINES>(plan, piece, (m * sub, i * sub), balance, soon);
        balance = LARGE && !balance;
        sub *= 4;
    }
    let rows = piece.len() / (8 * S::WIDTH);
    last::<S, LARGE>(plan, piece, i * rows, balance, sink, ahead.take(4 * LINES * LINE * rows));
}

/// The first layer or two; returns the number of blocks they leave.
fn first<S: Lanes, const LARGE: bool>(plan: &FmaNtt<S>, out: &mut [u64], source: &impl Source<S>) -> usize {
    let layers = plan.n.trailing_zeros() as usize - 3;
    plan.s.run(
        #[inline(always)]
        || {
            let prime = Prime::new(plan.s, plan.q.value());
            let w = plan.forward.three(&prime, 1, 0);
            if layers % 2 == 1 {
                first_layer::<S, LARGE>(&prime, out, &w[0], source);
                2
            } else {
                first_pass::<S, LARGE>(&prime, out, &w, source);
                4
            }
        },
    )
}

/// One pass over every block of `part`, which holds blocks `first`… of the layer with `m` blocks; asks for what comes soon.
fn passes<S: Lanes, const ASK: usize>(
    plan: &FmaNtt<S>,
    part: &mut [u64],
    (m, first): (usize, usize),
    balance: bool,
    soon: Option<usize>,
) {
    let mut soon = Soon::new(soon);
    plan.s.run(
        #[inline(always)]
        || {
            let prime = Prime::new(plan.s, plan.q.value());
            for (i, block) in part.chunks_exact_mut(plan.n / m).enumerate() {
                let w = plan.forward.three(&prime, m, first + i);
                if balance {
                    pass::<S, true, ASK>(&prime, block, &w, &mut soon);
                } else {
                    pass::<S, false, ASK>(&prime, block, &w, &mut soon);
                }
            }
        },
    );
}

/// The last three layers of a block whose rows of eight vectors start at `first`.
fn last<S: Lanes, const LARGE: bool>(
    plan: &FmaNtt<S>,
    block: &mut [u64],
    first: usize,
    balance: bool,
    sink: &impl Sink<S>,
    soon: Option<usize>,
) {
    let mut soon = Soon::new(soon);
    let table = &plan.forward.inner[first..first + block.len() / (8 * S::WIDTH)];
    plan.s.run(
        #[inline(always)]
        || {
            let prime = Prime::new(plan.s, plan.q.value());
            if balance {
                inner_pass::<S, LARGE, true>(&prime, block, table, sink, &mut soon);
            } else {
                inner_pass::<S, LARGE, false>(&prime, block, table, sink, &mut soon);
            }
        },
    );
}

/// (x, y) ← (x + w·y, x - w·y).
#[inline(always)]
fn cross<S: Lanes, const K: usize>(
    prime: &Prime<S>,
    x: &mut [S::V; K],
    (a, b): (usize, usize),
    w: &Factor<S>,
) {
    let s = prime.s;
    let t = prime.mul_factor_short(x[b], w);
    (x[a], x[b]) = (s.add(x[a], t), s.sub(x[a], t));
}

/// Two layers on four entries.
#[inline(always)]
fn two_layers<S: Lanes>(prime: &Prime<S>, x: &mut [S::V; 4], w: &[Factor<S>; 3]) {
    cross(prime, x, (0, 2), &w[0]);
    cross(prime, x, (1, 3), &w[0]);
    cross(prime, x, (0, 1), &w[1]);
    cross(prime, x, (2, 3), &w[2]);
}

/// The equal parts of a block, as vectors.
#[inline(always)]
pub(super) fn parts<S: Lanes, const K: usize>(block: &mut [u64]) -> [&mut [S::Words]; K] {
    let len = block.len() / K / S::WIDTH;
    let mut rest = S::words_mut(block).0;
    std::array::from_fn(|_| {
        let (head, tail) = std::mem::take(&mut rest).split_at_mut(len);
        rest = tail;
        head
    })
}

/// The parts of a block that two layers work on.
struct Quarters<'a, S: Lanes>([&'a mut [S::Words]; 4]);

impl<S: Lanes> Quarters<'_, S> {
    /// Reads entries `i` and does their first layer.
    #[inline(always)]
    fn begin<const BALANCE: bool>(&self, prime: &Prime<S>, i: usize, w: &[Factor<S>; 3]) -> [S::V; 4] {
        let (s, [a, b, c, d]) = (prime.s, &self.0);
        let mut x = [s.load(&a[i]), s.load(&b[i]), s.load(&c[i]), s.load(&d[i])];
        if BALANCE {
            x[0] = prime.balance(x[0]);
            x[1] = prime.balance(x[1]);
        }
        cross(prime, &mut x, (0, 2), &w[0]);
        cross(prime, &mut x, (1, 3), &w[0]);
        x
    }

    /// Does the second layer of entries `i` and writes them.
    #[inline(always)]
    fn end(&mut self, prime: &Prime<S>, i: usize, w: &[Factor<S>; 3], mut x: [S::V; 4]) {
        let (s, [a, b, c, d]) = (prime.s, &mut self.0);
        cross(prime, &mut x, (0, 1), &w[1]);
        cross(prime, &mut x, (2, 3), &w[2]);
        s.store(&mut a[i], x[0]);
        s.store(&mut b[i], x[1]);
        s.store(&mut c[i], x[2]);
        s.store(&mut d[i], x[3]);
    }
}

/// Two layers over a block; one layer of some entries overlaps with the other of the next.
#[inline(always)]
fn pass<S: Lanes, const BALANCE: bool, const ASK: usize>(
    prime: &Prime<S>,
    block: &mut [u64],
    w: &[Factor<S>; 3],
    soon: &mut Soon,
) {
    let [a, b, c, d] = parts::<S, 4>(block);
    let len = a.len();
    // Equal lengths, spelled out so that the loop checks no index.
    let mut quarters = Quarters::<S>([a, &mut b[..len], &mut c[..len], &mut d[..len]]);
    soon.ask::<ASK>();
    let mut x = quarters.begin::<BALANCE>(prime, 0, w);
    for i in 1..len {
        soon.ask::<ASK>();
        let next = quarters.begin::<BALANCE>(prime, i, w);
        quarters.end(prime, i - 1, w, x);
        x = next;
    }
    quarters.end(prime, len - 1, w, x);
}

/// The first two layers.
#[inline(always)]
fn first_pass<S: Lanes, const LARGE: bool>(
    prime: &Prime<S>,
    out: &mut [u64],
    w: &[Factor<S>; 3],
    source: &impl Source<S>,
) {
    let s = prime.s;
    let [a, b, c, d] = parts::<S, 4>(out);
    let len = a.len();
    for (i, (((a, b), c), d)) in a.iter_mut().zip(b).zip(c).zip(d).enumerate() {
        let mut x = [
            source.read::<LARGE>(prime, i, a),
            source.read::<LARGE>(prime, i + len, b),
            source.read::<LARGE>(prime, i + 2 * len, c),
            source.read::<LARGE>(prime, i + 3 * len, d),
        ];
        two_layers(prime, &mut x, w);
        s.store(a, x[0]);
        s.store(b, x[1]);
        s.store(c, x[2]);
        s.store(d, x[3]);
    }
}

/// The first layer alone, when the number of layers is odd.
#[inline(always)]
fn first_layer<S: Lanes, const LARGE: bool>(
    prime: &Prime<S>,
    out: &mut [u64],
    w: &Factor<S>,
    source: &impl Source<S>,
) {
    let s = prime.s;
    let [a, b] = parts::<S, 2>(out);
    let len = a.len();
    for (i, (a, b)) in a.iter_mut().zip(b).enumerate() {
        let mut x = [source.read::<LARGE>(prime, i, a), source.read::<LARGE>(prime, i + len, b)];
        cross(prime, &mut x, (0, 1), w);
        s.store(a, x[0]);
        s.store(b, x[1]);
    }
}

/// Eight vectors as they are.
#[inline(always)]
pub(super) fn load_rows<S: Lanes>(s: S, rows: &[S::Words; 8]) -> [S::V; 8] {
    std::array::from_fn(
        #[inline(always)]
        |k| s.load(&rows[k]),
    )
}

/// The last three layers, on groups of eight neighboring entries.
///
/// Three layers, the transposition and the end make a chain too long for a CPU to overlap with the next
/// one, so the pass is two short loops.
#[inline(always)]
fn inner_pass<S: Lanes, const LARGE: bool, const BALANCE: bool>(
    prime: &Prime<S>,
    block: &mut [u64],
    table: &[[S::Words; INNER]],
    sink: &impl Sink<S>,
    soon: &mut Soon,
) {
    let s = prime.s;
    let rows = S::words_mut(block).0.as_chunks_mut::<8>().0;
    for (turn, (rows, table)) in rows.chunks_mut(TURN).zip(table.chunks(TURN)).enumerate() {
        for (rows, table) in rows.iter_mut().zip(table) {
            soon.ask::<{ 4 * LINES }>();
            let mut x = s.group(load_rows(s, rows));
            if BALANCE {
                for x in &mut x[..4] {
                    *x = prime.balance(*x);
                }
            }
            let w = prime.factor(s.load(&table[0]));
            for k in 0..4 {
                cross(prime, &mut x, (k, k + 4), &w);
            }
            let w = [prime.factor(s.load(&table[1])), prime.factor(s.load(&table[2]))];
            for (k, j) in [(0, 0), (1, 0), (4, 1), (5, 1)] {
                cross(prime, &mut x, (k, k + 2), &w[j]);
            }
            for k in 0..8 {
                s.store(&mut rows[k], x[k]);
            }
        }
        for (i, (rows, table)) in rows.iter_mut().zip(table).enumerate() {
            let mut x = load_rows(s, rows);
            for k in 0..4 {
                cross(prime, &mut x, (2 * k, 2 * k + 1), &prime.factor(s.load(&table[3 + k])));
            }
            let x = s.ungroup(x);
            for k in 0..8 {
                let at = 8 * (TURN * turn + i) + k;
                s.store(&mut rows[k], sink.finish::<LARGE>(prime, at, x[k]));
            }
        }
    }
}
