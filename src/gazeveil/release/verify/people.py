"""Whether groups are as large as promised, and whether names, times, rates and channels are as the
certificate says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from gazeveil.gaze.cohort import Attributes
from gazeveil.gaze.geometry import Screen
from gazeveil.privacy.guarantee import OF_PEOPLE
from gazeveil.privacy.publication.piece_files import viewers_of
from gazeveil.privacy.rational import exact
from gazeveil.release.verify.outcome import VerifyCheck
from gazeveil.release.verify.released import ReleasedRecording

#: Names of `keep` for parts of a recording that have another name there.
_KEPT_AS = {"t_ns": "times"}


def check_table(certificate: Mapping[str, Any], people: Mapping[str, Attributes]) -> VerifyCheck:
    """At least k people share every row of the table of people."""
    rows = {p: tuple(sorted((k, str(v)) for k, v in a.items())) for p, a in people.items()}
    rows = {p: row for p, row in rows.items() if row}
    kept = set(certificate.get("kept", ()))
    if not rows:
        return VerifyCheck("people's table", note="no attributes of people are released")
    stated = certificate.get("people_table")
    if not isinstance(stated, Mapping):
        names = sorted({name for row in rows.values() for name, _ in row} - kept)
        if "attributes" in kept or not names:
            return VerifyCheck("people's table", note="attributes are kept by name, not covered")
        failure = f"Attributes of people are released ({', '.join(names)}) without any promise."
        return VerifyCheck("people's table", (failure,))
    rows = {p: tuple(cell for cell in row if cell[0] not in kept) for p, row in rows.items()}
    k = _whole("k", stated["guarantee"]["numbers"]["k"])
    small = {row: n for row, n in Counter(rows.values()).items() if n < k and row}
    failures = tuple(
        f"Only {n} of the people have the attributes {dict(row)}, and {k} are promised."
        for row, n in small.items()
    )
    return VerifyCheck("people's table", failures, f"at least {k} people share every row")


def check_groups(
    certificate: Mapping[str, Any], recordings: Sequence[ReleasedRecording]
) -> VerifyCheck:
    """Where people of a group get the same gaze, at least k have it."""
    guarantee = certificate["guarantee"]
    if guarantee["definition"] not in OF_PEOPLE:
        return VerifyCheck("groups", note="none are promised")
    k, names = _whole("k", guarantee["numbers"]["k"]), {r.person for r in recordings}
    if len(names) < k:
        failure = f"{len(names)} people are released, and groups of {k} are promised."
        return VerifyCheck("groups", (failure,))
    if guarantee["definition"] != "k-anonymity":
        return VerifyCheck("groups", note=f"at least {k} people are released")
    saw: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for r in recordings:
        saw[r.person].append((r.stimulus, r.samples))
    # Members of a group have recordings of the same stimuli and of the same lengths.
    sizes = Counter(tuple(sorted(s)) for s in saw.values())
    failures = [
        f"Only {n} of the people have recordings of these stimuli and lengths, and groups of {k}"
        f" are promised: {_short(shape)}."
        for shape, n in sizes.items()
        if n < k
    ]
    if "shared by" in guarantee["neighbours"]:
        sharing: dict[tuple[str, str], set[str]] = defaultdict(set)
        for r in recordings:
            sharing[r.stimulus, r.gaze].add(r.person)
        failures += [
            f"The gaze of {len(who)} people at '{stimulus}' is theirs alone, and {k} should share"
            " it."
            for (stimulus, _), who in sharing.items()
            if len(who) < k
        ]
    return VerifyCheck("groups", tuple(failures), f"at least {k} people are alike")


def check_contents(
    certificate: Mapping[str, Any], recordings: Sequence[ReleasedRecording]
) -> VerifyCheck:
    """Counts, times, rates and channels are those that the certificate states."""
    contents, kept = certificate.get("contents", {}), _kept(certificate)
    counts = {
        "people": len({r.person for r in recordings}),
        "recordings": len(recordings),
        "samples": sum(r.samples for r in recordings),
        "pieces": len(recordings),
        "viewers": viewers_of((r.stimulus, r.start_ns) for r in recordings),
    }
    failures = [
        f"The certificate counts {contents[name]} {name}, and there are {n}."
        for name, n in counts.items()
        if name in contents and contents[name] != n
    ]
    alignment = certificate.get("alignment", {})
    if alignment.get("time_zero") and "times" not in kept:
        late = sum(r.start_ns != 0 for r in recordings)
        failures += [f"{late} recordings do not begin at time 0."] if late else []
    if alignment.get("rate_hz") is not None and "rate" not in kept:
        public = float(exact("certificate", "rate_hz", str(alignment["rate_hz"])))
        other = sum(abs(r.rate_hz - public) > 1e-9 * public for r in recordings)
        failures += [f"{other} recordings have another rate than {public:g} Hz."] if other else []
    failures += _own_screens(recordings)
    extras = Counter(name for r in recordings for name in r.extras if name not in kept)
    failures += [
        f"{n} recordings have {name}, which the certificate does not say."
        for name, n in extras.items()
    ]
    return VerifyCheck("contents", tuple(failures), "counts, times, rates and channels fit")


def _own_screens(recordings: Sequence[ReleasedRecording]) -> list[str]:
    """Screens of one person alone that have the digits of an estimate: a reader worked them out
    from that person's recording, and whoever has it finds its owner by them.
    """
    people: dict[Screen, set[str]] = {}
    for r in recordings:
        if isinstance(r.space, Screen):
            people.setdefault(r.space, set()).add(r.person)
    own = [s for s, who in people.items() if len(who) == 1 and not _in_tenths_mm(s)]
    if not own:
        return []
    return [f"{len(own)} screens belong to one person each and have more digits than a ruler."]


def _in_tenths_mm(screen: Screen) -> bool:
    sizes_mm = (screen.width_mm, screen.height_mm, screen.distance_mm)
    return all(abs(10 * mm - round(10 * mm)) < 1e-6 for mm in sizes_mm)


def _whole(name: str, value: object) -> int:
    """A number of the certificate, unless writing it out would fill the memory."""
    return int(exact("certificate", name, str(value)))


def _kept(certificate: Mapping[str, Any]) -> set[str]:
    return {_KEPT_AS.get(name, name) for name in certificate.get("kept", ())}


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 100 else text[:97] + "..."
