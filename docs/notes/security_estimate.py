#!/usr/bin/env python3
"""What the best published attacks on learning with errors cost for the six rings of docs/security.md.

Two attacks on (n, q, uniform ternary secret, error of standard deviation 3.24), with 2n samples at most:

- primal: embed the secret and error as a unique shortest vector and reduce the lattice until it shows (Alkim, Ducas,
  Poeppelmann, Schwabe 2016; Albrecht, Goepfert, Virdia, Wunderer 2017; secrets smaller than errors by Bai and Galbraith
  2014). The reduced basis follows the geometric series assumption.
- dual: distinguish by many short vectors of the dual lattice (Albrecht 2017, the secret scaled as above), a sieve giving
  2^(0.2075 beta) of them at a time.

Three prices of reducing with blocks of beta in dimension d, all classical:

- core: 2^(0.292 beta), one call of a sieve without overheads. A lower bound, known to be far below what it costs.
- bdgl: 8 d calls of 2^(0.292 beta + 16.4) (Becker, Ducas, Gama, Laarhoven 2016, with the constant measured there).
- list: gates of list-decoding sieves with dimensions for free and progressive blocks, the line through the counts of
  Albrecht, Gheorghiu, Postlethwaite, Schanck 2020 as corrected by MATZOV 2022.

The formulas are those that the lattice estimator (https://github.com/malb/lattice-estimator) uses for these attacks and
prices; three examples of its documentation are repeated first, so that one sees how far this file agrees with it. It does
not have that program's hybrid and guessing attacks, which matter for sparse secrets and not for uniform ternary ones.
Only the standard library is needed.
"""

import math

log2 = math.log2

# log2 n, largest log2(PQ): runtime/bytecode/src/params/security.rs
RINGS = [(12, 106), (13, 214), (14, 430), (15, 868), (16, 1746), (17, 3520)]
ERROR = math.sqrt(10.5)
TERNARY = math.sqrt(2 / 3)


def log2_delta(beta):
    """log2 of the root Hermite factor of blocks of `beta` (Chen 2013)."""
    return log2(beta / (2 * math.pi * math.e) * (math.pi * beta) ** (1 / beta)) / (2 * (beta - 1))


def price(model, beta, d):
    """log2 of the cost of reducing a basis of dimension d with blocks of beta."""
    if model == "core":
        return 0.292 * beta
    if model == "bdgl":
        # The exponent that was measured in small dimensions, the asymptotic one above.
        slope = 0.387 if beta <= 90 else 0.292
        return add(3 * log2(d), slope * beta + 16.4 + (log2(8 * d) if beta < d else 0))
    free = max(beta * math.log(4 / 3) / math.log(beta / (2 * math.pi * math.e)), 0)
    gates = log2(5.46) + 0.29613500308205365 * (beta - free) + 20.387885985467914
    return add(3 * log2(d), log2(5.46 * max(d - beta, 1)) + gates)


def add(a, b):
    """log2(2^a + 2^b)."""
    return max(a, b) + math.log2(1 + 2 ** -abs(a - b))


def smallest(holds, low, high):
    """The smallest number in [low, high] that a monotone condition holds for, or none."""
    if not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def primal(n, log_q, secret, error, samples, model):
    """Cost, block size and dimension of the primal attack."""
    stretch = max(log2(error / secret), 0)

    def gap(beta, d):
        """log2 of the last block's norm over that of the projected short vector; not negative when it is found."""
        norm = log2(error**2 * (beta - 1) + error**2) / 2
        volume = (log2(error) + stretch * n + log_q * (d - n - 1)) / d
        return log2_delta(beta) * (2 * beta - d - 1) + volume - norm

    def best_dimension(beta):
        """Where volume and length balance: the most favorable dimension."""
        balanced = math.sqrt(((n + 1) * log_q - n * stretch - log2(error)) / log2_delta(beta))
        return max(n + 1, beta + 1, min(samples + n, math.ceil(balanced)))

    first = smallest(lambda beta: gap(beta, best_dimension(beta)) >= 0, 41, 4 * n)
    best = (math.inf, 0, 0)
    # Somewhat larger blocks work in smaller dimensions.
    for beta in range(first, first + 30):
        d = smallest(lambda d: gap(beta, d) >= 0, max(n, beta + 1), best_dimension(beta))
        best = min(best, (price(model, beta, d), beta, d))
    return best


def dual(n, log_q, secret, error, samples, model):
    """Cost, block size and dimension of the dual attack, at the best of its parameters."""
    stretch = max(log2(error / secret), 0)
    best = (math.inf, 0, 0)
    for beta in range(50, 3000, 1 if n <= 4096 else 2):
        delta = log2_delta(beta)
        # Short vectors (w, v / stretch) with w·A = v: dimension m + n, volume (q / stretch)^n.
        d = min(samples + n, max(beta + 1, math.ceil(math.sqrt(n * (log_q - stretch) / delta))))
        # Sieves give vectors longer than the shortest one by sqrt(4/3).
        length = delta * (d - 1) + n * (log_q - stretch) / d + log2(math.sqrt(4 / 3))
        # The products are Gaussian of this deviation over q; so many vectors tell them from uniform.
        width = length + log2(error) - log_q
        vectors = 4 * math.pi**2 * 2 ** (2 * width) / math.log(2) if width < 30 else math.inf
        repeats = max(vectors - 0.2075 * beta, 0)
        cost = price(model, beta, d) + repeats
        if cost < best[0]:
            best = (cost, beta, d)
        elif cost > best[0] + 40 and best[0] < math.inf:
            break
    return best


def main():
    print("examples of the lattice estimator's documentation, repeated")
    uniform_binary = math.sqrt(1 / 4)
    examples = [
        ("Kyber512, list", (512, log2(3329), math.sqrt(1.5), math.sqrt(1.5), 512, "list"), "143.8, 406, 998"),
        ("n = 1030, q = 2^64, bdgl", (1030, 64, uniform_binary, 3.19, 2060, "bdgl"), "56.6, 91, 1618"),
        ("n = 384, q = 2^7, bdgl", (384, 7, uniform_binary, 2.0, 768, "bdgl"), "161.8, 456, 595"),
    ]
    for name, arguments, documented in examples:
        cost, beta, d = primal(*arguments)
        print(f"  {name}: {cost:.1f}, {beta}, {d} (documented: {documented})")
    print()
    print("| n | log2(PQ) | attack | block | dimension | core | bdgl | list |")
    print("|---|---|---|---|---|---|---|---|")
    for log_n, bits in RINGS:
        n = 1 << log_n
        for name, attack in (("primal", primal), ("dual", dual)):
            costs = {model: attack(n, bits, TERNARY, ERROR, 2 * n, model) for model in ("core", "bdgl", "list")}
            _, beta, d = costs["bdgl"]
            row = " | ".join(f"{costs[model][0]:.1f}" for model in ("core", "bdgl", "list"))
            print(f"| 2^{log_n} | {bits} | {name} | {beta} | {d} | {row} |")
    print()
    print("largest log2(PQ) whose primal attack costs at least 2^128, by price")
    print("| n | core | bdgl | list |")
    print("|---|---|---|---|")
    for log_n, _ in RINGS:
        n, row = 1 << log_n, []
        for model in ("core", "bdgl", "list"):
            weak = lambda bits: primal(n, bits, TERNARY, ERROR, 2 * n, model)[0] < 128
            row.append(smallest(weak, 20, 5000) - 1)
        print(f"| 2^{log_n} | " + " | ".join(map(str, row)) + " |")


if __name__ == "__main__":
    main()
