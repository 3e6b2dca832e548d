"""Figures of a certificate in sentences: attacks on a release, and analyses of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

Part = Mapping[str, object]


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
            else "95 % CI {:.1f} to {:.1f} %; ".format(*(100 * float(str(end)) for end in ends))
        )
        return f"the person of {rate:.1f} % of all pieces ({between}chance {chance:.1f} %)"
    people = int(str(attack["people"]))
    between = ""
    if None not in ends:
        low, high = (float(str(end)) * people for end in ends)
        between = f"95 % CI {math.floor(low)} to {math.ceil(high)}; "
    return f"{attack['found']} of {people} {who} ({between}chance {attack['guessing']} of {people})"


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
