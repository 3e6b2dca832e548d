"""The sentence of a promise, generated from its map, so that it never says more than the map does.

A promise in plain words, made from its numbers: one sentence for what is protected against which
change and by how much, one for what it does not do.

"Changes the probability of any outcome by a factor of at most F" is the definition of differential
privacy with epsilon = ln F. Of a rho it is said with the tail of the loss (Bun and Steinke 2016,
Lemma 3.5): above rho + 2 sqrt(rho ln(1/delta)) with a chance of at most delta.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from gazeveil.privacy.promise.loss import (
    UNITS,
    Change,
    Loss,
    PromiseError,
    degrees,
    epsilon_of_rho,
    raised,
)
from gazeveil.privacy.rational import exact, format_exact, round_up

if TYPE_CHECKING:
    from gazeveil.privacy.guarantee import Guarantee

#: Numbers of which more is promised the larger they are; printed decimals of them are rounded down.
MORE_IS_BETTER = frozenset({"k", "r_deg", "w_samples", "t_samples"})

#: Numerical errors below this are kept and not printed: they read as zero.
LEAST_PRINTED = Fraction(1, 10**100)

#: The delta at which a rho is put into words.
PRINTED_DELTA = Fraction(1, 10**6)

UNIT_PHRASES = {
    "sample": "one gaze sample",
    "event": "one event",
    "window": "one window of a stream",
    "chunk": "one chunk of one feature of one recording",
    "recording-feature": "one feature of one recording",
    "recording": "one recording",
    "user": "everything of one person",
}

#: What at least k people have in common, for promises that compare people and not datasets.
ALIKE_CLAUSES = {
    "record": (
        "not a comparison of two datasets: every released record is shared by at least k people"
    ),
    "law": (
        "not a comparison of two datasets: everything released under one person's name is drawn"
        " from the same law as that of at least k - 1 others"
    ),
    "attributes": (
        "not a comparison of two datasets: the released attributes of a person are shared by at"
        " least k people"
    ),
    "seed": (
        "not a comparison of two datasets: what is released under a name is drawn from the same law"
        " for whichever person is behind it"
    ),
    "sequence": (
        "not a comparison of two datasets: of all people at least k would have given everything"
        " under a released name with probabilities within gamma"
    ),
    "event": "not a comparison of two datasets: other people could have given the released events",
}


def sentence(g: Guarantee) -> str:
    """The whole text of a guarantee."""
    who = g.mechanism or "This release"
    if g.definition == "none":
        text = f"{who} makes no privacy promise" + (f": {g.reason}." if g.reason else ".")
        return text + _clause("What it does not protect", g.not_covered)
    if g.status == "refuted":
        return (
            f"{who} makes no privacy promise. Its paper claims {claim(g)}, and that claim is"
            f" refuted: {g.reason}." + _clause("Besides, it does not cover", g.not_covered)
        )
    if g.status != "proved":
        basis = {"claimed": "is claimed but not proved", "empirical": "rests on experiments alone"}[
            g.status
        ]
        return f"{who}: {claim(g)} {basis}: {g.reason}." + _tail(g)
    return f"{who} promises {claim(g)}.{_meaning(g)}" + _tail(g)


def claim(g: Guarantee) -> str:
    """What is promised, with its numbers and its change."""
    n = {k: format_exact(v, down=k in MORE_IS_BETTER) for k, v in g.numbers.items()}
    about = UNIT_PHRASES[g.unit]
    claims = {
        "k-anonymity": lambda: f"{n['k']}-anonymity of the released record of one person",
        "plausible-deniability": lambda: (
            f"plausible deniability with k = {n['k']} and gamma = {n['gamma']} for {about}"
        ),
        "epsilon-dp": lambda: f"differential privacy with epsilon = {n['epsilon']} for {about}",
        "epsilon-delta-dp": lambda: (
            f"differential privacy with epsilon = {n['epsilon']} and delta = {n['delta']} for"
            f" {about}"
        ),
        "rho-zcdp": lambda: (
            f"zero-concentrated differential privacy with rho = {n['rho']} for {about}"
        ),
        "epsilon-ldp": lambda: (
            f"local differential privacy with epsilon = {n['epsilon']} for {about}"
        ),
        "geo-indistinguishability": lambda: (
            f"geo-indistinguishability with epsilon = {n['epsilon']} per"
            f" {degrees(g.numbers['r_deg'])} for {about}"
        ),
        "epsilon-w-r-dp": lambda: (
            f"(epsilon, w, r)-differential privacy with epsilon = {n['epsilon']}, w ="
            f" {n['w_samples']} samples and r = {n['r_deg']} degrees"
        ),
        "epsilon-w-r-t-dp": lambda: (
            f"(epsilon, w, r, t)-differential privacy with epsilon = {n['epsilon']}, w ="
            f" {n['w_samples']} samples, r = {n['r_deg']} degrees and t = {n['t_samples']} samples"
        ),
    }
    return claims[g.definition]() + f" (neighbours: {g.neighbours})"


def other_changes(g: Guarantee) -> Iterator[tuple[str, Change, Loss]]:
    """The changes a reader cares about besides the promise's own: in a few words, as a value, and
    what each loses at most.
    """
    if g.losses is None or g.change is None:
        return
    for phrase, change in _candidates(g.change, g.losses.about_table):
        if change == g.change:
            continue
        try:
            yield phrase, change, g.losses.loss(change)
        except PromiseError:
            continue


def _candidates(own: Change, table: bool) -> Iterator[tuple[str, Change]]:
    if table:
        for unit in ("recording-feature", "recording", "user"):
            if UNITS.index(unit) >= UNITS.index(own.unit):
                yield UNIT_PHRASES[unit], Change(unit)
        return
    move = own.move_deg if own.start_deg is None else own.start_deg
    far = "" if move is None else f", moved by at most {degrees(move)}"
    if move is not None:
        yield f"one sample{far}", Change.sample(move, own.metric)
        yield f"any second{far}", Change.window(seconds=1, move_deg=move, metric=own.metric)
        yield f"a whole recording{far}", Change.recording(move, own.metric)
    yield "a whole recording, replaced by any other", Change.recording(metric=own.metric)
    if move is not None:
        yield f"everything of one person{far}", Change.person(move, own.metric)
    yield "everything of one person, replaced by any other", Change.person(metric=own.metric)


def amounts(loss: Loss) -> str:
    """The numbers of a loss in words."""
    return ", ".join(f"{k} = {format_exact(v)}" for k, v in loss.numbers().items())


def _meaning(g: Guarantee) -> str:
    numbers: Mapping[str, Fraction] = g.numbers
    epsilon, k = numbers.get("epsilon"), numbers.get("k")
    if g.definition == "k-anonymity" and k is not None:
        alone = (
            f" At least {format_exact(k)} people share every released record or the law it was"
            " drawn from, so the record alone singles nobody out"
        )
        return alone + "; it does not limit what somebody learns who knows more than the record."
    if g.definition == "rho-zcdp":
        implied = epsilon_of_rho(numbers["rho"], PRINTED_DELTA)
        return (
            " That implies, for instance, differential privacy with epsilon ="
            f" {format_exact(implied)} and delta = {float(PRINTED_DELTA):g}."
        )
    if epsilon is None or g.definition == "geo-indistinguishability":
        return ""
    factor = (
        f"at most {_factor(epsilon)}"
        if epsilon <= 20
        else "e to the power of epsilon, which is so large that it limits next to nothing"
    )
    # A mechanism that averages over groups keeps k-anonymity besides; it says so by giving k as
    # well.
    besides = (
        f" Besides, at least {format_exact(k)} people share every released record."
        if k is not None
        else ""
    )
    # With a delta the factor alone would be a false sentence.
    more = f", and by at most {format_exact(numbers['delta'])} more" if "delta" in numbers else ""
    return (
        " Changing that much of the data changes the probability of any outcome by a factor of"
        f" {factor}{more}." + besides
    )


def _tail(g: Guarantee) -> str:
    text = ""
    others = list(other_changes(g))
    if others:
        text += (
            " For other changes of the data: "
            + "; ".join(f"{phrase}: {amounts(loss)}" for phrase, _, loss in others)
            + "."
        )
    if (
        g.losses is not None
        and g.unit != "user"
        and not any(change.unit == "user" for _, change, _ in others)
    ):
        text += (
            " What it adds up to for one person depends on how long their recordings are, which is"
            " not known here."
        )
    if g.also:
        text += (
            " Besides, at most: "
            + "; ".join(f"{phrase}: {amounts(loss)}" for phrase, loss in g.also)
            + "."
        )
    error = g.delta_num
    if error >= LEAST_PRINTED:
        text += (
            f" Finite arithmetic adds at most {round_up(error, 2):.2g} to delta, the probability"
            " with which the promise may fail."
        )
    text += _clause("It assumes", g.assumptions) + _clause("It does not cover", g.not_covered)
    return text + (f" Status: proved ({g.reason})." if g.status == "proved" and g.reason else "")


def _factor(epsilon: Fraction) -> str:
    value = math.exp(float(epsilon))
    scale = 10 ** (3 - math.floor(math.log10(value)))
    return f"{math.ceil(value * scale) / scale:g}"


def _clause(begin: str, parts: tuple[str, ...]) -> str:
    return f" {begin}: " + "; ".join(parts) + "." if parts else ""


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
