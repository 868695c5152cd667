"""For tests: the Poisson arrivals that the engine plans for a seed, by another implementation.

The generator is std::mt19937_64 behind std::seed_seq, both fixed by the C++ standard
([rand.eng.mers], [rand.util.seedseq]); base::RandomStream says how the two are used."""

from collections.abc import Iterator
from math import log1p

WORD, LONG = (1 << 32) - 1, (1 << 64) - 1
N, M = 312, 156


def seed_words(values: list[int], n: int) -> list[int]:
    """`std::seed_seq(values).generate` of so many words, at least 623."""

    def mixed(word: int) -> int:
        return word ^ word >> 27

    b, s, p = [0x8B8B8B8B] * n, len(values), (n - 11) // 2
    rounds = max(s + 1, n)
    for k in range(rounds + n):
        here, near, far, last = k % n, (k + p) % n, (k + p + 11) % n, (k - 1) % n
        if k < rounds:
            first = 1664525 * mixed(b[here] ^ b[near] ^ b[last]) & WORD
            added = s if k == 0 else here + (values[k - 1] if k <= s else 0)
            second = (first + added) & WORD
            b[near], b[far] = (b[near] + first) & WORD, (b[far] + second) & WORD
        else:
            first = 1566083941 * mixed((b[here] + b[near] + b[last]) & WORD) & WORD
            second = (first - here) & WORD
            b[near], b[far] = b[near] ^ first, b[far] ^ second
        b[here] = second
    return b


def generated(values: list[int]) -> Iterator[int]:
    """The numbers of `std::mt19937_64`, seeded by a seed_seq of these values."""
    words = seed_words(values, 2 * N)
    x = [words[2 * i] | words[2 * i + 1] << 32 for i in range(N)]
    while True:
        for i in range(N):
            y = x[i] >> 31 << 31 | x[(i + 1) % N] & 0x7FFFFFFF
            x[i] = x[(i + M) % N] ^ y >> 1 ^ (0xB5026F5AA96619E9 if y & 1 else 0)
            z = x[i]
            z ^= z >> 29 & 0x5555555555555555
            z ^= z << 17 & 0x71D67FFFEDA60000
            z ^= z << 37 & 0xFFF7EEE000000000 & LONG
            yield z ^ z >> 43


def poisson_arrivals_ps(seed: int, rate_hz: float) -> Iterator[int]:
    """The times at which events are planned, since the begin."""
    at_ps = 0
    for number in generated([seed & WORD, seed >> 32, *b"arrivals"]):
        uniform = (number >> 11) * 2.0**-53
        at_ps += int(-log1p(-uniform) * (1 / rate_hz) * 1e12 + 0.5)
        yield at_ps
