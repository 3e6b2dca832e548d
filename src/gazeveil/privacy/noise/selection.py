"""Private choice of one of a few candidates: permute-and-flip, in whole numbers.

McKenna and Sheldon, "Permute-and-Flip: a new mechanism for differentially private selection", 2020.
Candidates are looked at in uniformly random order; one whose cost exceeds the least by g units is
taken with probability exp(-epsilon g / spread), the cheapest with certainty, so that one is always
taken. It never does worse in expectation than the exponential mechanism with the same exponents.

`spread` is public: if data change by one unit of privacy, let each cost change by some c; then

    largest c - least c <= spread

is all that is asked, and the choice is epsilon-DP without the usual factor 2
(proofs/fpa-private-k.md). No floating point touches a choice: Bernoulli(exp(-a/b)) is that of
:mod:`gazeveil.privacy.noise.exact`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.checks import refuse
from gazeveil.compiled import compiled
from gazeveil.privacy.noise.exact import draw_bernoulli_exp
from gazeveil.privacy.randomness.rng import WordArray, Words
from gazeveil.privacy.randomness.uniform import draw_below

#: Exponents are whole multiples of one over this; budgets are rounded down to one.
EPSILON_STEPS = 1 << 20

#: Largest spread of costs that whole numbers of 64 bits are planned for.
MOST_SPREAD = 1 << 20

#: Exponents beyond this are drawn as this: exp(-2**18) is far below what the sampler's cut tail
#: costs (:func:`gazeveil.privacy.noise.exact.tail_delta`).
_MOST_EXPONENT = 1 << 18


@compiled
def _permute_and_flip(
    gaps: WordArray, unit: np.uint64, out: Ints, done: int, words: WordArray, position: int
) -> tuple[int, int]:
    order = np.empty(len(gaps), dtype=np.int64)
    while done < len(out):
        for i in range(len(gaps)):
            order[i] = i
        left, after = len(gaps), position
        while True:
            drawn, after = draw_below(np.uint64(left), words, after)
            if after < 0:
                return done, position
            at = np.int64(drawn)
            pick = order[at]
            kept, after = draw_bernoulli_exp(gaps[pick], unit, words, after)
            if after < 0:
                return done, position
            if kept:
                break
            left -= 1
            order[at] = order[left]
        out[done] = pick
        done += 1
        position = after
    return done, position


class _SelectionKernel:
    def __init__(self, gaps: WordArray, unit: int) -> None:
        self.gaps, self.unit = gaps, np.uint64(unit)

    def __call__(self, out: Ints, done: int, words: WordArray, position: int) -> tuple[int, int]:
        return _permute_and_flip(self.gaps, self.unit, out, done, words, position)


def exponents(costs: Sequence[int], epsilon: Fraction, spread: int) -> tuple[Ints, int]:
    """What each candidate's cost above the least is worth: whole numbers a, and the unit b, so that
    a candidate is taken with probability exp(-a/b) when it is looked at.

    Parameters
    ----------
    costs : sequence of int
        One per candidate, whole: what the choice depends on is their differences.
    epsilon : Fraction
        Budget of the choice; rounded down to a multiple of 2**-20.
    spread : int
        By how much the changes of two costs may differ, 1 to 2**20.

    Examples
    --------
    >>> gaps, unit = exponents([7, 5, 9], Fraction(1, 2), 4)
    >>> [Fraction(int(a), unit) for a in gaps]
    [Fraction(1, 4), Fraction(0, 1), Fraction(1, 2)]
    """
    if not len(costs):
        refuse("private choice", "costs", "at least one candidate", costs)
    if checks.count("private choice", "spread", spread) > MOST_SPREAD:
        refuse("private choice", "spread", f"at most {MOST_SPREAD}", spread)
    steps = int(epsilon * EPSILON_STEPS)
    if steps < 0:
        refuse("private choice", "epsilon", "at least 0", epsilon)
    unit = EPSILON_STEPS * spread
    least, most = min(costs), _MOST_EXPONENT * unit
    return np.array([min(steps * (c - least), most) for c in costs], dtype=np.int64), unit


def permute_and_flip(
    costs: Sequence[int], epsilon: Fraction, spread: int, words: Words, count: int = 1
) -> Ints:
    """Numbers of `count` candidates, each an independent private choice that costs epsilon; see
    :func:`exponents`.
    """
    gaps, unit = exponents(costs, epsilon, spread)
    kernel = _SelectionKernel(gaps.astype(np.uint64), unit)
    return words.run(kernel, count, 4 * len(gaps))


def selection_probabilities(gaps: Floats) -> Floats:
    """The law of permute-and-flip for exponents a, at least one of which is 0.

    Candidate k has probability exp(-a_k) times the integral over v from 0 to 1 of the product of
    1 - v exp(-a_j) over all others: a polynomial, so Gauss and Legendre's rule with enough nodes
    has no error but rounding.

    Examples
    --------
    >>> selection_probabilities(np.array([0.0, np.log(2.0)])).tolist()
    [0.75, 0.25]
    """
    nodes, weights = np.polynomial.legendre.leggauss(len(gaps) // 2 + 1)
    v, weights = (nodes + 1.0) / 2.0, weights / 2.0
    kept = np.exp(-np.asarray(gaps, dtype=np.float64))
    factors = 1.0 - v[:, None] * kept
    return np.array(
        [
            kept[k] * float(weights @ np.prod(np.delete(factors, k, axis=1), axis=1))
            for k in range(len(kept))
        ]
    )
