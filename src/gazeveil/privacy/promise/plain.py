"""A promise in plain words, made from its numbers: one sentence for what is protected against which
change and by how much, one for what it does not do.

"Changes the probability of any outcome by a factor of at most F" is the definition of differential
privacy with epsilon = ln F. Of a rho it is said with the tail of the loss (Bun and Steinke 2016,
Lemma 3.5): above rho + 2 sqrt(rho ln(1/delta)) with a chance of at most delta.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from gazeveil.privacy.promise.change import degrees
from gazeveil.privacy.promise.loss import raised
from gazeveil.privacy.rational import exact, format_exact

#: What is added to a probability beside the factor, where noise is Gaussian.
TAIL = 10**-6

#: Above this epsilon a bound protects nothing worth the name.
_LARGEST_EPSILON = 7

#: Statuses of claims of a paper without a proof.
_UNPROVED = ("claimed", "empirical")

Part = Mapping[str, object]


def plain(guarantee: Part, rate_hz: object = None) -> str:
    """The promise and its main limit, for readers who know no mathematics.

    Parameters
    ----------
    guarantee : mapping
        As :meth:`gazeveil.privacy.guarantee.Guarantee.to_dict` gives it.
    rate_hz : optional
        The public rate of the release, to say windows in seconds.
    """
    words = promise_in_words(guarantee, rate_hz)
    if guarantee["definition"] != "none" and guarantee["status"] in _UNPROVED:
        return f"{words} It is a claim because {guarantee['reason']}."
    if guarantee["definition"] == "none" or guarantee["status"] != "proved":
        return words
    return f"{words} {limit_in_words(guarantee)}"


def promise_in_words(guarantee: Part, rate_hz: object = None) -> str:
    """What is protected against which change, and by how much."""
    numbers, definition = _numbers(guarantee.get("numbers")), guarantee["definition"]
    if definition == "none":
        return f"Nothing is promised: {guarantee['reason']}."
    if guarantee["status"] == "refuted":
        return f"Nothing is promised: the claim of its paper is refuted, {guarantee['reason']}."
    if definition == "k-anonymity":
        sentence = _of_group(str(guarantee["neighbours"]), numbers["k"])
    elif definition == "plausible-deniability":
        sentence = _deniable(numbers)
    else:
        sentence = _bounded(_change(str(guarantee["unit"]), numbers, rate_hz), numbers)
    if guarantee["status"] in _UNPROVED:
        return f"Claimed, not promised: {sentence}"
    return sentence


def limit_in_words(guarantee: Part) -> str:
    """The one thing that a proved promise does not do."""
    if guarantee["definition"] in ("k-anonymity", "plausible-deniability"):
        return (
            "It does not hold against an attacker who has everyone else's raw data, or after a"
            " second release."
        )
    if guarantee["unit"] == "user":
        return "It does not hide what all participants have in common."
    whole = _numbers(guarantee.get("user"))
    if not whole:
        return "What it adds up to for one participant is not known."
    if _epsilon(whole) > _LARGEST_EPSILON:
        return "It does not hide who a participant is."
    return _bounded("Replacing everything of one participant", whole)


def person_in_words(per_person: Part, guarantee: Part, pieces: bool = False) -> str:
    """What the whole release adds up to for one participant, from a certificate. With `pieces` no
    pseudonym lasts longer than a piece.
    """
    if "reason" in per_person:
        return f"What that adds up to for one participant is not known: {per_person['reason']}"
    numbers = _numbers(per_person.get("numbers"))
    if guarantee["unit"] == "user":
        return "That already covers everything under one pseudonym."
    if not numbers:
        return "What that adds up to for one participant is not known."
    one = "All pieces of one participant" if pieces else "Everything of one participant"
    exactly = ", ".join(
        f"{name} = {format_exact(value)}" for name, value in numbers.items() if name != "delta_num"
    )
    if _epsilon(numbers) > _LARGEST_EPSILON:
        where = "pieces that they join" if pieces else "the recordings under one pseudonym"
        return (
            f"{one}: {exactly}, far too much to hide a participant. An attacker with other"
            f" recordings of a participant may recognise {where}."
        )
    return f"{one}: {exactly}. {_bounded('Replacing all of it', numbers)}"


def limits_little(guarantee: Part) -> bool:
    """Whether the numbers of a promise are too large to protect anything."""
    numbers = _numbers(guarantee.get("numbers"))
    bounds = "rho" in numbers or "epsilon" in numbers
    return bounds and _epsilon(numbers) > _LARGEST_EPSILON


def _of_group(neighbours: str, k: Fraction) -> str:
    if "attributes" in neighbours:
        return f"Every row of this table is the same for at least {k} participants."
    how = f"is shared by at least {k} participants"
    if "same law" in neighbours:
        how = f"was drawn by one rule for at least {k} participants"
    return f"What is released under a pseudonym {how}; the files alone single no one out."


def _deniable(numbers: Mapping[str, Fraction]) -> str:
    gamma = numbers["gamma"]
    likely = (
        "all of them equally likely"
        if gamma == 1
        else f"none of them more than {format_exact(gamma)} times as likely as another"
    )
    return (
        f"At least {numbers['k']} participants could have given what is released under any"
        f" pseudonym, {likely}."
    )


def _change(unit: str, numbers: Mapping[str, Fraction], rate_hz: object) -> str:
    """The change that the promise speaks of, as the subject of a sentence."""
    far = f" by at most {degrees(numbers['r_deg'])}" if "r_deg" in numbers else ""
    verb = "Moving" if far else "Replacing"
    if unit == "window":
        long = _long(int(numbers["w_samples"]), rate_hz)
        if "t_samples" in numbers:
            begin = degrees(numbers["r_deg"])
            return f"Replacing any {long} of a recording by gaze that begins at most {begin} away"
        return f"{verb} any {long} of a recording{far}"
    return {
        "sample": f"{verb} one gaze sample{far}",
        "event": "Adding or removing one event",
        "chunk": "Replacing one stretch of one feature of a recording",
        "recording-feature": "Replacing one feature of one recording",
        "recording": "Replacing one recording",
        "user": "Replacing all recordings of one participant",
    }[unit]


def _long(samples: int, rate_hz: object) -> str:
    rate = None if rate_hz in (None, "") else _number(rate_hz)
    if rate is None or rate <= 0:
        return f"{samples} samples in a row"
    seconds = f"{float(samples / rate):.3g}"
    return f"{seconds} {'second' if seconds == '1' else 'seconds'} ({samples} samples)"


def _bounded(change: str, numbers: Mapping[str, Fraction]) -> str:
    epsilon, delta = _epsilon(numbers), numbers.get("delta", Fraction(0))
    if epsilon > _LARGEST_EPSILON:
        return (
            f"This promise is too weak to protect anything: {change[0].lower()}{change[1:]} may"
            " change the probability of an outcome by a factor of e to the power of"
            f" {format_exact(Fraction(math.ceil(epsilon)))}."
        )
    more = ""
    if "rho" in numbers:
        more = ", plus one in a million"
    elif delta:
        more = f", plus {float(delta):.2g}"
    factor = _up(math.exp(float(epsilon)))
    return f"{change} changes the probability of any outcome by a factor of at most {factor}{more}."


def _epsilon(numbers: Mapping[str, Fraction]) -> Fraction:
    if "rho" not in numbers:
        return numbers["epsilon"]
    rho = float(numbers["rho"])
    return raised(rho + 2 * math.sqrt(rho * -math.log(TAIL)))


def _up(value: float) -> str:
    """Three digits, rounded up: a bound is never rounded in its favour."""
    scale = 10.0 ** (2 - math.floor(math.log10(value)))
    return f"{math.ceil(value * scale) / scale:g}"


def _numbers(stored: object) -> dict[str, Fraction]:
    return {k: _number(v) for k, v in stored.items()} if isinstance(stored, Mapping) else {}


def _number(value: object) -> Fraction:
    # A third-party certificate may hold an exponent that would fill the memory.
    return exact("certificate", "numbers", str(value))
