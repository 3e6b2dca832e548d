"""A promise in one sentence without jargon, made from the numbers of a certificate.

Differential privacy is said as odds: whoever weighs two possibilities against each other can shift
their odds by a factor of at most e**epsilon after seeing the files. That is the definition itself
(Bayes' rule), so the sentence says neither more nor less. Of a rho it is said with the tail of the
loss (Bun and Steinke 2016, Lemma 3.5): above rho + 2 sqrt(rho ln(1/delta)) with a chance of at most
delta.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction

from gazeveil.privacy.promise.change import degrees
from gazeveil.privacy.promise.conversions import raised
from gazeveil.privacy.rational import exact, format_exact

#: The chance with which the odds may shift by more than is said, where noise is Gaussian.
TAIL = 10**-6

#: Above this factor a bound on odds says next to nothing.
_LARGEST_EPSILON = 7

Part = Mapping[str, object]


def promise_in_words(guarantee: Part, rate_hz: object = None) -> str:
    """What is promised, as one sentence.

    Parameters
    ----------
    guarantee : mapping
        As :meth:`gazeveil.privacy.guarantee.Guarantee.to_dict` gives it.
    rate_hz : optional
        The public rate of the release, to say windows in seconds.
    """
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
        two = _guesses(str(guarantee["unit"]), numbers, rate_hz)
        sentence = f"Take {two}: {_shift(numbers)}."
    if guarantee["status"] == "claimed":
        return f"This would be promised, and is not: {sentence}"
    return sentence


def person_in_words(per_person: Part, guarantee: Part, pieces: bool = False) -> str:
    """What the whole release adds up to for one person, as one or two sentences, from a
    certificate. With `pieces` no name lasts longer than a piece.
    """
    if "reason" in per_person:
        return f"What that adds up to for one person is not known: {per_person['reason']}"
    numbers = _numbers(per_person.get("numbers"))
    if guarantee["unit"] == "user":
        return "That already speaks of everything that is released under one name."
    if not numbers:
        return "What that adds up to for one person is not known."
    about = (
        "Over all pieces of one person, whichever they are, that adds up to"
        if pieces
        else "Over everything of one person, that adds up to"
    )
    exact = ", ".join(
        f"{name} = {format_exact(value)}" for name, value in numbers.items() if name != "delta_num"
    )
    if _epsilon(numbers) > _LARGEST_EPSILON:
        where = "in pieces that they manage to join" if pieces else "by all that is released under"
        name = "" if pieces else " one name"
        return (
            f"{about} {exact}: far too much to hide a person. Whoever has other recordings of"
            f" somebody may recognise them {where}{name}."
        )
    return f"{about} {exact}. Take two guesses at all that a person did: {_shift(numbers)}."


def found_in_words(attack: Part, who: str = "people") -> str:
    """What an attacker found, with its interval and what guessing finds: people, or the people of
    single pieces.
    """
    ends = [attack.get(end) for end in ("low", "high")]
    if attack.get("asked") == "pieces":
        rate, chance = (100 * float(str(attack[name])) for name in ("rate", "chance"))
        between = (
            ""
            if None in ends
            else "95 %: {:.1f} to {:.1f} %; ".format(*(100 * float(str(end)) for end in ends))
        )
        return f"the person of {rate:.1f} % of all pieces ({between}chance {chance:.1f} %)"
    people = int(str(attack["people"]))
    between = ""
    if None not in ends:
        low, high = (float(str(end)) * people for end in ends)
        between = f"95 %: {math.floor(low)} to {math.ceil(high)}; "
    return f"{attack['found']} of {people} {who} ({between}chance {attack['guessing']})"


#: Scenario -> what the attacker had.
_HAD = {
    "raw/private": "other, unprotected recordings of them",
    "private/private": "another protected copy, of other recordings of them",
    "release/release": "another part of the same files",
}


def attack_in_words(attack: Part, who: str = "people") -> Iterator[str]:
    """What was tried on test releases and on the published files, in sentences."""
    draws = int(str(attack.get("repetitions", 1)))
    yield (
        f"In {draws} test release{'s' * (draws > 1)} made like this one, the strongest of"
        f" {attack.get('tried', 1)} attackers recognised {found_in_words(attack, who)}, when it had"
        f" {had_in_words(attack)}."
    )
    if attack.get("p_value") is None:
        yield "One test release gives no verdict: repeat it."
    elif attack.get("fewest") is not None:
        few = int(str(attack["fewest"]))
        some = f"fewer than {few}" if few <= int(str(attack["people"])) else "all of them"
        yield f"With {attack['people']} {who} {some} cannot be told from chance."
    files = attack.get("files")
    if isinstance(files, Mapping):
        yield (
            f"In the published files themselves it recognised {found_in_words(files, who)}, when it"
            f" had {had_in_words(files)}."
        )


def had_in_words(attack: Part) -> str:
    """What the attacker had, to follow "it had"."""
    return _HAD.get(str(attack.get("scenario")), "other recordings of them")


def analysis_in_words(row: Part) -> str:
    """The error of an analysis between that of raw recordings and that of no data."""
    unit = f" {row['unit']}" if row.get("unit") else ""
    text = f"{row['analysis']}: {row['metric']} {row['value']}{unit}"
    anchors = [
        f"{words} {row[name]}"
        for name, words in (("raw", "raw against raw"), ("reference", "without the data"))
        if row.get(name) is not None
    ]
    return f"{text} ({'; '.join(anchors)})" if anchors else text


def limits_little(guarantee: Part) -> bool:
    """Whether the numbers of a promise bound odds so loosely that they limit next to nothing."""
    numbers = _numbers(guarantee.get("numbers"))
    of_odds = "rho" in numbers or "epsilon" in numbers
    return of_odds and _epsilon(numbers) > _LARGEST_EPSILON


def _of_group(neighbours: str, k: Fraction) -> str:
    if "same law" in neighbours:
        how = f"was drawn by one rule for at least {k} people"
    elif "attributes" in neighbours:
        return f"Every row of this table is the same for at least {k} people."
    else:
        how = f"is shared by at least {k} people"
    return f"What is released under any name {how}, so these files alone single nobody out."


def _deniable(numbers: Mapping[str, Fraction]) -> str:
    gamma = numbers["gamma"]
    likely = (
        "all of them equally likely"
        if gamma == 1
        else f"none of them more than {format_exact(gamma)} times as likely as another"
    )
    return (
        f"At least {numbers['k']} of the people could have given what is released under any name,"
        f" {likely}."
    )


def _guesses(unit: str, numbers: Mapping[str, Fraction], rate_hz: object) -> str:
    """The two possibilities that the promise compares."""
    far = f" that are at most {degrees(numbers['r_deg'])} apart" if "r_deg" in numbers else ""
    if unit == "window":
        long = _long(int(numbers["w_samples"]), rate_hz)
        if "t_samples" in numbers:
            begin = degrees(numbers["r_deg"])
            return (
                f"any {long} of a person's gaze, and two guesses at how they looked around in that"
                f" time that begin at most {begin} apart"
            )
        return f"any {long} of a person's gaze, and two guesses at where they looked{far}"
    return {
        "sample": f"any one moment, and two guesses at where a person looked{far}",
        "place": f"two guesses at a place that a person looked at{far}",
        "event": "any one event of a person's gaze, and the guesses that it took place or did not",
        "chunk": "any stretch of one measured quantity of one recording, and two guesses at it",
        "recording-feature": "any one measured quantity of one recording, and two guesses at it",
        "recording": "any one recording, and two guesses at what it holds",
        "user": "any one person, and two guesses at what all their recordings hold",
    }[unit]


def _long(samples: int, rate_hz: object) -> str:
    rate = None if rate_hz in (None, "") else _number(rate_hz)
    if rate is None or rate <= 0:
        return f"{samples} samples in a row"
    seconds = f"{float(samples / rate):.3g}"
    return f"{seconds} {'second' if seconds == '1' else 'seconds'} ({samples} samples)"


def _shift(numbers: Mapping[str, Fraction]) -> str:
    epsilon = _epsilon(numbers)
    if "rho" in numbers:
        aside = ", but for a chance of one in a million"
    else:
        delta = numbers.get("delta", Fraction(0))
        aside = f", but for an allowance of {float(delta):.2g}" if delta else ""
    if epsilon > _LARGEST_EPSILON:
        return (
            "seeing these files may decide between them, since the bound on how the odds shift is e"
            f" to the power of {math.ceil(epsilon)}, which limits next to nothing"
        )
    return (
        f"seeing these files makes neither more than {_up(math.exp(float(epsilon)))} times as"
        f" likely, against the other, as it was before{aside}"
    )


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
    # A certificate of somebody else may hold an exponent that would fill the memory.
    return exact("certificate", "numbers", str(value))
