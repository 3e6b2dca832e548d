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
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gazeveil.privacy.noise import arithmetic, knorm
from gazeveil.privacy.promise.plain import (
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

#: How deep a certificate nests; nothing below is on the page.
_DEEPEST = 16

#: Assumptions that are exact in `PRIVACY.json` and said for everybody here.
_PLAIN_ASSUMPTIONS = {
    rng.ASSUMPTION: (
        "the computer's random numbers were secret and good, and nobody read its memory meanwhile"
    ),
    arithmetic.ASSUMPTION: "the computer calculates as the standard for its arithmetic says",
    knorm.ASSUMPTION: "the computer calculates as the standard for its arithmetic says",
}


def page(certificate: Certificate) -> str:
    """The page of a certificate; the same certificate always gives the same page."""
    said = _as_words(certificate)
    assert isinstance(said, Mapping)
    works, fails = _useful(said)
    parts = [
        *_warnings(said),
        "# Privacy of this data release",
        _section("What was done", _done(said)),
        _section("What is promised", _promised(said)),
        _section("What is not promised", _not_promised(said)),
        _section("Who was recognised", _attacked(said)),
        _section("What still works", works),
        _section("What no longer works", fails),
        _section("For the consent form", _consent(said)),
        _section("Appendix: settings and conditions", _settings(said)),
        _section("Appendix: how to check this page", _check(certificate)),
    ]
    return "\n\n".join(parts) + "\n"


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
        found.append(_REFUTED.format(reason=_capital(str(guarantee["reason"]))))
    return found


def _person(certificate: Certificate) -> str:
    pieces = "pieces" in _part(certificate, "contents")
    per_person, guarantee = _part(certificate, "per_person"), _part(certificate, "guarantee")
    return person_in_words(per_person, guarantee, pieces)


def _section(title: str, sentences: Iterable[str]) -> str:
    return f"## {title}\n\n" + "\n".join(sentences)


def _done(certificate: Certificate) -> list[str]:
    mechanism, contents = _part(certificate, "mechanism"), _part(certificate, "contents")
    counts = ", ".join(
        f"{_grouped(contents[name])} {name}"
        for name in ("people", "recordings", "pieces", "stimuli", "samples")
        if name in contents
    )
    if "viewers" in contents:
        counts += f"; at most {_grouped(contents['viewers'])} pieces are of one time and stimulus"
    summary = str(mechanism.get("summary", ""))
    does = f"It {summary[0].lower()}{summary[1:]} " if summary else ""
    made = (
        "Recordings of eye movements were changed by the software Gazeveil"
        f" {_part(certificate, 'versions').get('gazeveil', '')}. {does}{_left(certificate)}"
    )
    held = [f"It holds {counts}."] if counts else []
    return [made, *held, *_aligned(certificate)]


def _settings(certificate: Certificate) -> list[str]:
    """What only experts read."""
    mechanism, guarantee = _part(certificate, "mechanism"), _part(certificate, "guarantee")
    parameters = ", ".join(
        f"{k} = {v}" for k, v in _part(mechanism, "parameters").items() if v not in ("None", "")
    )
    said = [f"Mechanism `{mechanism['name']}`, reading {mechanism['reading']}: {parameters}."]
    if guarantee["status"] == "claimed":
        said += ["", f"Why the promise is a claim: {guarantee['reason']}."]
    if guarantee["status"] == "proved":
        if guarantee["definition"] != "none":
            said += ["", _person(certificate)]
        said += ["", f"The promise is a theorem ({guarantee['reason']}), not a measurement."]
    assumptions = _texts(certificate, "assumptions")
    if assumptions and guarantee["status"] != "refuted":
        plain = dict.fromkeys(_PLAIN_ASSUMPTIONS.get(a, a) for a in assumptions)
        said += ["", "It holds if:", "", *_list(plain)]
    attack = certificate.get("attack")
    if isinstance(attack, Mapping):
        who = f"`{attack['attacker']}`, scenario {attack.get('scenario')}"
        said += ["", f"The strongest attacker ({attack.get('battery')} battery): {who}."]
    return said


def _left(certificate: Certificate) -> str:
    """What is left of the recordings themselves."""
    if _part(certificate, "guarantee").get("definition") == "none":
        return "Nothing bounds how much of the recordings themselves is left in this release."
    return "The recordings themselves are not part of this release."


def _aligned(certificate: Certificate) -> list[str]:
    alignment, kept = _part(certificate, "alignment"), _texts(certificate, "kept")
    sentences = []
    if "pieces" in _part(certificate, "contents"):
        sentences += [
            "Recordings were cut into pieces. Every piece has a random name that no other piece"
            " has, so no name says which pieces are of one person.",
            f"Times count {alignment.get('times')}; there are no dates.",
        ]
    elif alignment.get("pseudonyms") and "person" not in kept:
        sentences.append("People have new random names, and their order was shuffled.")
    if alignment.get("time_zero") and "times" not in kept:
        sentences.append("Times begin at zero in every recording; there are no dates.")
    if alignment.get("rate_hz") is not None:
        rate = alignment["rate_hz"]
        sentences.append(f"All recordings have one public rate of {rate} samples per second.")
    if alignment.get("frame") == "head":
        sentences.append(
            "Degrees are relative to the head, whose straight ahead is the middle of the sphere:"
            " they say how the eyes moved, and not where in the world somebody looked."
        )
    table = certificate.get("people_table")
    if isinstance(table, Mapping):
        words = promise_in_words(_part(table, "guarantee"))
        sentences.append(f"There is a table of people's attributes, made coarser. {words}")
    elif "attributes" not in kept:
        sentences.append("Nothing is said about age, gender or other attributes of people.")
    return sentences


def _promised(certificate: Certificate) -> list[str]:
    guarantee = _part(certificate, "guarantee")
    words = promise_in_words(guarantee, _part(certificate, "alignment").get("rate_hz"))
    if guarantee["definition"] == "none" or guarantee["status"] != "proved":
        return [f"**{words}**"]
    return [f"**{words}**", "", f"{limit_in_words(guarantee)} This is proved, not measured."]


def _not_promised(certificate: Certificate) -> list[str]:
    kept = [f"{name}: released as recorded, on request" for name in _texts(certificate, "kept")]
    listed = dict.fromkeys([*_texts(certificate, "not_covered"), *kept])
    return [
        "The promise does not speak of:",
        "",
        *_list([*listed, "what people tell about themselves elsewhere"]),
    ]


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


def _useful(certificate: Certificate) -> tuple[list[str], list[str]]:
    """Analyses that still work, and those that are hardly better than without the data."""
    utility = certificate.get("utility")
    analyses = utility.get("analyses") if isinstance(utility, Mapping) else None
    if not isinstance(analyses, Sequence) or not analyses:
        nothing = ["No analysis was tried on this release, so nothing was measured."]
        return nothing, nothing
    rows = [row for row in analyses if isinstance(row, Mapping)]
    compared = [row for row in rows if isinstance(row.get("reference"), int | float)]
    works = _list(analysis_in_words(row) for row in compared if _still_works(row))
    fails = _list(analysis_in_words(row) for row in compared if not _still_works(row))
    alone = _list(analysis_in_words(row) for row in rows if row not in compared)
    none = ["Nothing that was tried and compared with having no data."]
    return works or none, [*(fails or none), *(["", "Not compared:", "", *alone] if alone else [])]


def _still_works(row: Mapping[str, object]) -> bool:
    """Whether an analysis is better by a quarter than one that has no data."""
    return float(str(row["value"])) <= LARGEST_SHARE * float(str(row["reference"]))


def _consent(certificate: Certificate) -> list[str]:
    guarantee, attack = _part(certificate, "guarantee"), certificate.get("attack")
    if _warnings(certificate):
        return ["Nothing can be offered to participants on the strength of this release."]
    words = "There is no mathematical guarantee."
    useless = guarantee["status"] == "claimed" or limits_little(guarantee)
    if guarantee["definition"] != "none" and not useless:
        rate_hz = _part(certificate, "alignment").get("rate_hz")
        words = f"This is guaranteed: {promise_in_words(guarantee, rate_hz)}"
    measured = " Somebody who has other recordings of my eyes might still recognise me."
    if isinstance(attack, Mapping):
        measured = (
            f" In a test on this data, the strongest computer program we tried {_still(attack)}."
        )
    kept = _texts(certificate, "kept")
    named = "with the name that I have in the recordings" if "person" in kept else "without my name"
    dated = "with the times" if "times" in kept else "without the date"
    return [
        f'> "My eye movements will be published in a changed form, {named} and {dated}'
        f" of the recording. {words}{measured} Published data cannot be called back"
        ' afterwards."'
    ]


def _still(attack: Mapping[str, object]) -> str:
    found = found_in_words(attack, "participants")
    return f"still recognised {found} when it had {had_in_words(attack)}"


def _check(certificate: Certificate) -> list[str]:
    return [
        "`PRIVACY.json` holds the exact statement and the SHA-256 of every file. `gazeveil verify"
        " FOLDER` checks files, numbers and this page against it, and, for whoever holds the"
        " recordings, `--against RECORDINGS` that nothing of them is in the files. With"
        " `PRIVACY.sig`, `--key` checks who published it.",
        "",
        f"SHA-256 of the statement: `{digest(certificate)}`",
    ]


def digest(certificate: Certificate) -> str:
    """SHA-256 of everything that a certificate says, but for its list of files: that has the page
    in it, and the page has this.
    """
    said = {name: part for name, part in certificate.items() if name != "files"}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _list(items: Iterable[str]) -> list[str]:
    return [f"- {item}" for item in items]


def _part(whole: Mapping[str, object], name: str) -> Mapping[str, object]:
    part = whole.get(name)
    return part if isinstance(part, Mapping) else {}


def _texts(whole: Mapping[str, object], name: str) -> list[str]:
    part = whole.get(name)
    return [str(p) for p in part] if isinstance(part, list | tuple) else []


def _grouped(count: object) -> str:
    return f"{count:,}" if isinstance(count, int) else str(count)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
