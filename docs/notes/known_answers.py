#!/usr/bin/env python3
"""The known answers of the tests, computed from docs/FILES.md alone with big integers and the standard library.

Nothing here is translated from the Rust code: transforms are sums over the definition, base conversion is the Chinese
remainder theorem, hashes and streams are written from their specifications. Run it without arguments; the tests
named after each heading hold what it prints.
"""

import cmath
import math
import struct

# Parameters of the vectors: ring degree, towers, special primes, towers per digit.
N = 256
TOWERS = [1_125_899_904_679_937, 274_876_334_081, 1_152_921_504_606_584_833]
SPECIAL = [140_737_487_306_753, 70_368_743_587_841]
DIGIT = 2
# A pool with one more: towers of every level, and of every digit.
POOL = [*TOWERS, 12_289]
POOL_LEVELS = [[0, 3], [0, 1], [0, 1, 2, 3]]
POOL_DIGITS = [[0, 1], [2, 3]]
SCALE = 2.0**30
STEPS = 3

M32 = 0xFFFFFFFF


# --- BLAKE3 and ChaCha20 -------------------------------------------------------------------------

IV = [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19]
PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
CHUNK_START, CHUNK_END, PARENT, ROOT, KEYED, CONTEXT, MATERIAL = 1, 2, 4, 8, 16, 32, 64


def rotate_right(x, n):
    return (x >> n | x << (32 - n)) & M32


def blake3_compress(chain, block, counter, length, flags):
    m = list(struct.unpack("<16I", block.ljust(64, b"\0")))
    v = chain + IV[:4] + [counter & M32, counter >> 32, length, flags]

    def mix(a, b, c, d, x, y):
        for word, first, second in ((x, 16, 12), (y, 8, 7)):
            v[a] = (v[a] + v[b] + word) & M32
            v[d] = rotate_right(v[d] ^ v[a], first)
            v[c] = (v[c] + v[d]) & M32
            v[b] = rotate_right(v[b] ^ v[c], second)

    for _ in range(7):
        for i in range(4):
            mix(i, 4 + i, 8 + i, 12 + i, m[2 * i], m[2 * i + 1])
        for i in range(4):
            mix(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, m[8 + 2 * i], m[9 + 2 * i])
        m = [m[p] for p in PERMUTATION]
    return [v[i] ^ v[i + 8] for i in range(8)]


def blake3(data, key=IV, mode=0):
    """32 bytes of BLAKE3 with a key (eight words) and a mode flag."""

    def node(data, first, root):
        if len(data) <= 1024:
            chain = list(key)
            blocks = [data[i : i + 64] for i in range(0, max(len(data), 1), 64)]
            for i, block in enumerate(blocks):
                flags = mode | (CHUNK_START if i == 0 else 0)
                if i + 1 == len(blocks):
                    flags |= CHUNK_END | (ROOT if root else 0)
                chain = blake3_compress(chain, block, first, len(block), flags)
            return chain
        chunks = (len(data) - 1) // 1024
        left = 1024 << (chunks.bit_length() - 1)
        pair = node(data[:left], first, False) + node(data[left:], first + left // 1024, False)
        return blake3_compress(list(key), struct.pack("<16I", *pair), 0, 64, mode | PARENT | (ROOT if root else 0))

    return struct.pack("<8I", *node(data, 0, True))


def derive_key(context, material):
    key = blake3(context.encode(), mode=CONTEXT)
    return blake3(material, list(struct.unpack("<8I", key)), MATERIAL)


def keyed_hash(key, data):
    return blake3(data, list(struct.unpack("<8I", key)), KEYED)


def chacha20_words(key):
    """The key stream of ChaCha20 with nonce 0 and a 64-bit counter from 0, as 64-bit little-endian words."""
    counter = 0
    while True:
        start = list(struct.unpack("<4I", b"expand 32-byte k")) + list(struct.unpack("<8I", key))
        start += [counter & M32, counter >> 32, 0, 0]
        x = start[:]

        def quarter(a, b, c, d):
            for first, second, third, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[first] = (x[first] + x[second]) & M32
                x[third] = rotate_right(x[third] ^ x[first], 32 - by)

        for _ in range(10):
            for i in range(4):
                quarter(i, 4 + i, 8 + i, 12 + i)
            for i in range(4):
                quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        block = struct.pack("<16I", *((a + b) & M32 for a, b in zip(x, start)))
        yield from struct.unpack("<8Q", block)
        counter += 1


# --- The ring ------------------------------------------------------------------------------------


def square_root(x, q):
    """Tonelli and Shanks, with the least quadratic non-residue."""
    z = next(z for z in range(2, q) if pow(z, (q - 1) // 2, q) == q - 1)
    s, t = 0, q - 1
    while t % 2 == 0:
        s, t = s + 1, t // 2
    m, c, rest, root = s, pow(z, t, q), pow(x, t, q), pow(x, (t + 1) // 2, q)
    while rest != 1:
        k = next(k for k in range(m) if pow(rest, 2**k, q) == 1)
        b = pow(c, 2 ** (m - k - 1), q)
        m, c = k, b * b % q
        rest, root = rest * c % q, root * b % q
    return root


def root_of_unity(q, order):
    root = q - 1
    while order > 2:
        root, order = square_root(root, q), order // 2
    return root


def reverse(i, n):
    return int(format(i, f"0{n.bit_length() - 1}b")[::-1], 2)


ROOTS = {}


def transform(coeffs, q):
    """Entry i is the value at psi^(2 rev(i) + 1)."""
    n = len(coeffs)
    if (q, n) not in ROOTS:
        psi = root_of_unity(q, 2 * n)
        powers = [1]
        for _ in range(2 * n - 1):
            powers.append(powers[-1] * psi % q)
        ROOTS[q, n] = powers
    powers = ROOTS[q, n]
    exponents = [2 * reverse(i, n) + 1 for i in range(n)]
    return [sum(c * powers[j * e % (2 * n)] for j, c in enumerate(coeffs)) % q for e in exponents]


def inverse(values, q):
    n = len(values)
    psi_inverse = pow(root_of_unity(q, 2 * n), q - 2, q)
    exponents = [2 * reverse(i, n) + 1 for i in range(n)]
    powers = [pow(psi_inverse, k, q) for k in range(2 * n)]
    n_inverse = pow(n, q - 2, q)
    return [
        n_inverse * sum(v * powers[j * e % (2 * n)] for v, e in zip(values, exponents)) % q for j in range(n)
    ]


def centered(residues, primes):
    """Coefficients nearest to zero from residues (a list for each prime)."""
    product = math.prod(primes)
    factors = [(product // p) * pow(product // p, p - 2, p) for p in primes]
    numbers = [sum(r[i] * f for r, f in zip(residues, factors)) % product for i in range(len(residues[0]))]
    return [x - product if 2 * x > product else x for x in numbers]


def substitute(values, g):
    """The automorphism X -> X^g on values."""
    n = len(values)
    at = {2 * reverse(i, n) + 1: i for i in range(n)}
    return [values[at[(2 * reverse(i, n) + 1) * g % (2 * n)]] for i in range(n)]


# --- Seeds ---------------------------------------------------------------------------------------


def uniform(seed, index, tower, q, n):
    material = seed + struct.pack("<QQ", index, tower)
    words = chacha20_words(derive_key("fhec 1 uniform half of keys and ciphertexts", material))
    mask, out = (1 << q.bit_length()) - 1, []
    while len(out) < n:
        word = next(words) & mask
        if word < q:
            out.append(word)
    return out


def ternary(seed, n):
    words = chacha20_words(derive_key("fhec 1 ternary secret", seed + struct.pack("<Q", 0)))
    return [(next(words) * 3 >> 64) - 1 for _ in range(n)]


def error(seed, index, n):
    words = chacha20_words(derive_key("fhec 1 encryption error", seed + struct.pack("<Q", index)))
    mask = (1 << 21) - 1
    sample = lambda w: bin(w & mask).count("1") - bin(w >> 32 & mask).count("1")
    return [sample(next(words)) for _ in range(n)]


class Seeds:
    """The seeds of the tests."""

    def __init__(self, number):
        self.key = derive_key("fhec 1 deterministic seeds for tests", struct.pack("<Q", number))
        self.count = 0

    def next(self):
        self.count += 1
        return keyed_hash(self.key, struct.pack("<Q", self.count - 1))


# --- The scheme ----------------------------------------------------------------------------------


def encode(slots, scale, n):
    """Integer coefficients of the polynomial whose value at zeta^(5^j) is slot j times the scale."""
    powers = [pow(5, j, 2 * n) for j in range(n // 2)]
    zeta = [cmath.exp(1j * math.pi * k / n) for k in range(2 * n)]
    value = lambda k: 2 / n * scale * sum((z * zeta[-p * k % (2 * n)]).real for z, p in zip(slots, powers))
    return [round(value(k)) for k in range(n)]


def small(coeffs, primes):
    return [transform([c % q for c in coeffs], q) for q in primes]


def combine(f, *polys):
    """Tower by tower and entry by entry; f takes the prime and one residue of each polynomial."""
    return lambda primes: [[f(q, *x) % q for x in zip(*towers)] for q, *towers in zip(primes, *polys)]


def digest(towers):
    return blake3(b"".join(struct.pack(f"<{len(tower)}Q", *tower) for tower in towers)).hex()


def fingerprint(towers, pool=None):
    words = [N.bit_length() - 1, len(towers), *towers, len(SPECIAL), *SPECIAL, DIGIT, 1, 1]
    if pool:
        levels, digits = pool
        words.append(len(levels))
        for level in levels:
            words += [len(level), *level]
        words += [len(digits), *map(len, digits)]
    return derive_key("fhec 1 parameters", struct.pack(f"<{len(words)}Q", *words)).hex()


def rotated(towers, level, held, digits, secret, message, seeds):
    """Encrypts a message at a level and rotates it; level and digits are lists of towers by their index, held those of the key."""
    primes = towers + SPECIAL
    at = lambda indices: [primes[i] for i in indices]
    special = range(len(towers), len(primes))
    s = dict(enumerate(small(secret, primes)))
    pick = lambda poly, indices: [poly[i] for i in indices]

    public, private = seeds.next(), seeds.next()
    a = {i: uniform(public, 0, i, primes[i], N) for i in level}
    m, e = small(message, at(level)), small(error(private, 0, N), at(level))
    c0 = combine(lambda q, m, e, a, s: m + e - a * s, m, e, pick(a, level), pick(s, level))(at(level))
    print(f"encryption at level {level}, next seeds: c0\n  {digest(c0)}")

    public, private = seeds.next(), seeds.next()
    g = pow(5, STEPS, 2 * N)
    p = math.prod(SPECIAL)
    key_towers, sum_towers = [*held, *special], [*level, *special]
    to = {i: substitute(s[i], pow(g, -1, 2 * N)) for i in key_towers}
    sums = [[[0] * N for _ in sum_towers] for _ in range(2)]
    halves = []
    for index, digit in enumerate(digits):
        if not set(digit) & set(held):
            continue
        key_a = {i: uniform(public, index, i, primes[i], N) for i in key_towers}
        key_e = small(error(private, index, N), at(key_towers))
        b = combine(lambda q, e, a, t: e - a * t, key_e, pick(key_a, key_towers), pick(to, key_towers))
        key_b = dict(zip(key_towers, b(at(key_towers))))
        for i in set(digit) & set(held):
            key_b[i] = [(b + p * s) % primes[i] for b, s in zip(key_b[i], s[i])]
        halves += pick(key_b, key_towers)
        own = [i for i in digit if i in level]
        if not own:
            continue
        lifted = small(centered([inverse(a[i], primes[i]) for i in own], at(own)), at(sum_towers))
        for half, key in zip(sums, (key_b, key_a)):
            half[:] = combine(lambda q, x, d, k: x + d * k, half, lifted, pick(key, sum_towers))(at(sum_towers))
    print(f"key of the rotation by {STEPS}, next seeds: halves b, digit after digit\n  {digest(halves)}")
    sums[0][: len(level)] = combine(lambda q, x, c: x + p * c, sums[0], c0)(at(level))
    result = []
    for half in sums:
        rest = centered([inverse(x, q) for x, q in zip(half[len(level) :], SPECIAL)], SPECIAL)
        rest = small(rest, at(level))
        divided = combine(lambda q, x, r: (x - r) * pow(p, -1, q), half, rest)(at(level))
        result.append([substitute(tower, g) for tower in divided])
    print(f"rotation of the ciphertext by {STEPS}: both halves\n  {digest(result[0])}\n  {digest(result[1])}")
    return result


def rescaled(towers, half, high, low):
    """round(A x / D), with A the product of the towers that `low` has and `high` lacks, and D the other way round."""
    divided, added = [i for i in high if i not in low], [i for i in low if i not in high]
    d, a = (math.prod(towers[i] for i in some) for some in (divided, added))
    raised = {i: [x * a % towers[i] for x in tower] for i, tower in zip(high, half)}
    primes = [towers[i] for i in low]
    rest = small(centered([inverse(raised[i], towers[i]) for i in divided], [towers[i] for i in divided]), primes)
    kept = [raised.get(i, [0] * N) for i in low]
    return combine(lambda q, x, r: (x - r) * pow(d, -1, q), kept, rest)(primes)


def main():
    assert blake3(b"").hex().startswith("af1349b9f5f9a1a6a0404dea36dcc949")
    assert struct.pack("<Q", next(chacha20_words(bytes(32)))).hex() == "76b8e0ada0f13d90"
    primes = TOWERS + SPECIAL
    print(f"fingerprint of the parameters (ckks::tests::known)\n  {fingerprint(TOWERS)}")

    print("roots of order 64 (ring::root)")
    for q in [65_537, 274_876_334_081, 1_125_899_904_679_937, 1_152_921_504_606_584_833]:
        print(f"  {q}: {root_of_unity(q, 64)}")

    print(f"transforms of i^3 + 7 for i < {N} (ring::tests::known): first entries, hash")
    for q in primes + [65_537]:
        found = transform([(i**3 + 7) % q for i in range(N)], q)
        print(f"  {q}: {found[:3]} {digest([found])}")

    print("uniform residues of the seed 0, 1, ... 31, polynomial 5 (ckks::tests::known): first entries, hash")
    seed = bytes(range(32))
    found = [uniform(seed, 5, i, q, N) for i, q in enumerate(primes)]
    for tower in found:
        print(f"  {tower[:2]}")
    print(f"  {digest(found)}")

    seeds = Seeds(1)
    secret = ternary(seeds.next(), N)
    key_id = seeds.next()[:16]
    print("secret key of the seeds 1: id, first coefficients, hash of N bytes, coefficients plus one")
    print(f"  {key_id.hex()} {secret[:12]} {blake3(bytes(c + 1 for c in secret)).hex()}")

    slots = [(j % 7 - 3) / 4 for j in range(N // 2)]
    message = encode(slots, SCALE, N)
    print(f"plaintext of (j mod 7 - 3) / 4 at 2^30: first coefficients {message[:4]}")
    chain = range(len(TOWERS))
    digits = [chain[i : i + DIGIT] for i in range(0, len(chain), DIGIT)]
    rotated(TOWERS, list(chain), list(chain), digits, secret, message, seeds)

    print(f"the same from a pool with levels {POOL_LEVELS} and digits {POOL_DIGITS}: fingerprint")
    print(f"  {fingerprint(POOL, (POOL_LEVELS, POOL_DIGITS))}")
    seeds = Seeds(1)
    secret, _ = ternary(seeds.next(), N), seeds.next()
    high, low = POOL_LEVELS[1], POOL_LEVELS[0]
    result = rotated(POOL, high, sorted({*high, *low}), POOL_DIGITS, secret, message, seeds)
    halves = [digest(rescaled(POOL, half, high, low)) for half in result]
    print(f"and rescaled to level 0\n  {halves[0]}\n  {halves[1]}")


if __name__ == "__main__":
    main()
