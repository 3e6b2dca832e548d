"""`PRIVACY.md`: the one page about a release that an ethics board reads.

It is made from the certificate alone, so `gazeveil verify` can make it again and see whether either
was edited.

Figures of a certificate in sentences: attacks on a release, and analyses of it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from gazeveil.pages import capital, render
from gazeveil.privacy.promise.sentence import (
    limit_in_words,
    limits_little,
    person_in_words,
    promise_in_words,
)
from gazeveil.privacy.randomness import rng

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


Certificate = Mapping[str, object]

_SEEDED = (
    "**TEST RELEASE: THIS PROTECTS NOBODY.** Its random numbers came from a known seed, so anybody"
    " can undo the noise. Do not publish it."
)
_REFUTED = "**THE CLAIM IS REFUTED: THIS RELEASE PROMISES NOTHING.** {reason}."

#: What moves a cursor or turns the direction of writing.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")

#: The most of the error of an analyst without data at which an analysis still works.
LARGEST_SHARE = 0.75

#: What a release holds, in the order of the page.
_COUNTED = ("people", "recordings", "pieces", "stimuli", "samples")

#: How deep a certificate nests; nothing below is on the page.
_DEEPEST = 16

#: Beginnings of assumptions that are exact in `PRIVACY.json` and said for everybody here: of the
#: random numbers, and of doubles and functions of the platform.
_PLAIN_ASSUMPTIONS = {
    rng.ASSUMPTION: (
        "the computer's random numbers were secret and good, and nobody read its memory meanwhile"
    ),
    "the platform's ": "the computer calculates as the standard for its arithmetic says",
}


def page(certificate: Certificate) -> str:
    """The page of a certificate; the same certificate always gives the same page.

    Raises
    ------
    KeyError, TypeError, ValueError, AttributeError
        For a certificate that is not whole.
    """
    told = _as_words(certificate)
    assert isinstance(told, Mapping)
    mechanism, guarantee, contents = (
        _part(told, n) for n in ("mechanism", "guarantee", "contents")
    )
    alignment, attack, table = (told.get(n) for n in ("alignment", "attack", "people_table"))
    alignment = alignment if isinstance(alignment, Mapping) else {}
    attack = attack if isinstance(attack, Mapping) else None
    kept, rows = _texts(told, "kept"), _analyses(told)
    bounded = guarantee["definition"] != "none"
    promised = bounded and guarantee["status"] == "proved"
    compared = [row for row in rows if isinstance(row.get("reference"), int | float)]
    return render(
        "privacy/publication/PRIVACY.md.jinja",
        warnings=_warnings(told),
        version=_part(told, "versions").get("gazeveil", ""),
        name=mechanism["name"],
        reading=mechanism["reading"],
        summary=str(mechanism.get("summary", "")),
        parameters={
            name: value
            for name, value in _part(mechanism, "parameters").items()
            if value not in ("None", "")
        },
        guarantee=guarantee,
        reason=guarantee["reason"],
        promise=promise_in_words(guarantee, alignment.get("rate_hz")),
        promised=promised,
        limit=limit_in_words(guarantee) if promised else "",
        person=_person(told) if promised else "",
        offered=bounded and guarantee["status"] != "claimed" and not limits_little(guarantee),
        table_promise=(
            promise_in_words(_part(table, "guarantee")) if isinstance(table, Mapping) else ""
        ),
        assumptions=dict.fromkeys(
            next((plain for a, plain in _PLAIN_ASSUMPTIONS.items() if text.startswith(a)), text)
            for text in _texts(told, "assumptions")
        ),
        not_promised=dict.fromkeys(
            [
                *_texts(told, "not_covered"),
                *(f"{name}: released as recorded, on request" for name in kept),
                "what people tell about themselves elsewhere",
            ]
        ),
        kept=kept,
        alignment=alignment,
        contents=contents,
        counted=[name for name in _COUNTED if name in contents],
        attack=attack,
        attacker="" if attack is None else attack["attacker"],
        attacked=[] if attack is None else list(attack_in_words(attack, "participants")),
        still="" if attack is None else _still(attack),
        analyses=rows,
        works=[analysis_in_words(row) for row in compared if _still_works(row)],
        fails=[analysis_in_words(row) for row in compared if not _still_works(row)],
        alone=[analysis_in_words(row) for row in rows if row not in compared],
        digest=digest(certificate),
    )


def _as_words(part: object, depth: int = 0) -> object:
    """A part of a certificate whose texts are words on the page, and neither HTML nor a link nor a
    heading: names in it are of any text, and a page that forges its own section misleads a board.
    """
    if isinstance(part, Mapping | list | tuple) and depth > _DEEPEST:
        return ""
    if isinstance(part, Mapping):
        return {_as_words(name): _as_words(value, depth + 1) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [_as_words(value, depth + 1) for value in part]
    if not isinstance(part, str):
        return part
    line = " ".join(part.split()) if any(c.isspace() and c != " " for c in part) else part
    line = _CONTROLS.sub("?", line).replace("<", "&lt;").replace("](", "]\\(")
    return f"\\{line}" if line.startswith(("#", ">", "=")) else line


def summary(certificate: Certificate) -> list[str]:
    """The page in a few lines, for a terminal."""
    mechanism, guarantee = _part(certificate, "mechanism"), _part(certificate, "guarantee")
    kept = ", ".join(_texts(certificate, "kept"))
    lines = [*_warnings(certificate), f"Made by {mechanism['name']} ({mechanism['reading']})."]
    lines.append(promise_in_words(guarantee, _part(certificate, "alignment").get("rate_hz")))
    if guarantee["definition"] != "none" and guarantee["status"] == "proved":
        lines.append(_person(certificate))
    lines.append(f"Not covered: {'; '.join(_texts(certificate, 'not_covered'))}.")
    if kept:
        lines.append(f"Kept as recorded: {kept}.")
    return [*lines, *_attacked(certificate)]


def _warnings(certificate: Certificate) -> list[str]:
    guarantee = _part(certificate, "guarantee")
    found = [_SEEDED] if certificate.get("seeded") else []
    if guarantee["status"] == "refuted":
        found.append(_REFUTED.format(reason=capital(str(guarantee["reason"]))))
    return found


def _person(certificate: Certificate) -> str:
    pieces = "pieces" in _part(certificate, "contents")
    per_person, guarantee = _part(certificate, "per_person"), _part(certificate, "guarantee")
    return person_in_words(per_person, guarantee, pieces)


def _attacked(certificate: Certificate) -> list[str]:
    attack = certificate.get("attack")
    if not isinstance(attack, Mapping):
        return ["No attack was run on this release, so nothing was measured."]
    first, *more = attack_in_words(attack, "participants")
    return [
        f"**{first}**",
        *more,
        "An attacker that comes later may do better; only the promise is a limit.",
    ]


def _analyses(certificate: Certificate) -> list[Part]:
    """The analyses that were tried."""
    analyses = _part(certificate, "utility").get("analyses")
    listed = analyses if isinstance(analyses, Sequence) else []
    return [row for row in listed if isinstance(row, Mapping)]


def _still_works(row: Mapping[str, object]) -> bool:
    """Whether an analysis is better by a quarter than one that has no data."""
    return float(str(row["value"])) <= LARGEST_SHARE * float(str(row["reference"]))


def _still(attack: Mapping[str, object]) -> str:
    found = found_in_words(attack, "participants")
    return f"still recognised {found} when it had {had_in_words(attack)}"


def digest(certificate: Certificate) -> str:
    """SHA-256 of everything that a certificate says, but for its list of files: that has the page
    in it, and the page has this.
    """
    said = {name: part for name, part in certificate.items() if name != "files"}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _part(whole: Mapping[str, object], name: str) -> Mapping[str, object]:
    part = whole.get(name)
    return part if isinstance(part, Mapping) else {}


def _texts(whole: Mapping[str, object], name: str) -> list[str]:
    part = whole.get(name)
    return [str(p) for p in part] if isinstance(part, list | tuple) else []
