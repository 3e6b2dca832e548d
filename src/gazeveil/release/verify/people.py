"""Whether groups are as large as promised, and whether names, times, rates and channels are as the
certificate says.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gazeveil.gaze.cohort import Attributes, Cohort
from gazeveil.gaze.geometry import Screen, Space
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.guarantee import OF_PEOPLE
from gazeveil.privacy.publication.outputs import CHANNELS, viewers_of
from gazeveil.privacy.rational import exact
from gazeveil.release.verify.files import VerifyCheck

#: Metadata that a reader adds by itself, about the format and not about the recording.
_OF_READERS = frozenset(
    {"assumed_geometry", "doubts", "facts", "source", "unit"}
    | {f"arff_{n}" for n in ("width_px", "height_px", "width_mm", "height_mm", "distance_mm")}
)

Progress = Callable[[Iterable[Recording]], Iterable[Recording]]


@dataclass(frozen=True)
class ReleasedRecording:
    """One recording of a release.

    Parameters
    ----------
    person, stimulus, session, task : str
        Its names.
    rate_hz : float
        Nominal.
    space : Screen or Sphere
        Where it was shown.
    start_ns : int
        Its first time.
    samples : int
        How many.
    extras : tuple of str
        Parts beside gaze that it has.
    gaze : str
        SHA-256 of its gaze; equal for equal gaze.
    """

    person: str
    stimulus: str
    session: str
    task: str
    rate_hz: float
    space: Space
    start_ns: int
    samples: int
    extras: tuple[str, ...]
    gaze: str


def look(cohort: Cohort, progress: Progress = lambda r: r) -> tuple[ReleasedRecording, ...]:
    """Read every recording of a release once."""
    return tuple(_facts(r) for r in progress(cohort))


def _facts(r: Recording) -> ReleasedRecording:
    digest = hashlib.sha256()
    for values in (r.x_deg, r.y_deg, r.valid):
        digest.update(np.ascontiguousarray(values).tobytes())
    return ReleasedRecording(
        *r.key,
        rate_hz=r.rate_hz,
        space=r.space,
        start_ns=int(r.t_ns[0]) if len(r) else 0,
        samples=len(r),
        extras=tuple(n for n in CHANNELS if _has(r, n)),
        gaze=digest.hexdigest(),
    )


def _has(recording: Recording, name: str) -> bool:
    value = getattr(recording, name)
    if name == "metadata":
        return bool(set(value) - _OF_READERS)
    if name == "labels":
        # GazeCom's layout has a column for labels; in a release it says nothing.
        return any((words != "undefined").any() for words in value.values())
    if name == "confidence" and value is not None:
        return bool((value != recording.valid).any())
    return bool(value) if name == "messages" else value is not None


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
    contents = certificate.get("contents", {})
    kept = {_KEPT_AS.get(name, name) for name in certificate.get("kept", ())}
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
    """List screens of one participant alone whose size has the digits of an estimate.

    A reader estimated it from that participant's recording, so it links the two.
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


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 100 else text[:97] + "..."


def check_pieces(recordings: Sequence[ReleasedRecording]) -> VerifyCheck:
    """Every name has one piece; pieces of one stimulus and time have the same session, length and
    rate; and each time of a stimulus has the same number of them.
    """
    names = Counter(r.person for r in recordings)
    lasting = sum(n > 1 for n in names.values())
    failures = []
    if lasting:
        failures.append(
            f"{lasting} names have more than one piece, and the evidence under one name adds up."
        )
    windows: dict[tuple[str, str], dict[int, list[ReleasedRecording]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for r in recordings:
        windows[r.stimulus, r.task][r.start_ns].append(r)
    for (stimulus, _), by_time in sorted(windows.items()):
        shapes = {
            start: {(p.session, p.samples, p.rate_hz) for p in pieces}
            for start, pieces in by_time.items()
        }
        unlike = sum(len(s) > 1 for s in shapes.values())
        if unlike:
            failures.append(
                f"At {unlike} times of stimulus '{stimulus}' pieces differ in session, length or"
                " rate, which tells them apart."
            )
        if len({len(pieces) for pieces in by_time.values()}) > 1:
            failures.append(
                f"The times of stimulus '{stimulus}' have different numbers of pieces, which tells"
                " when somebody was lost."
            )
    return VerifyCheck("pieces", tuple(failures), "each has a name of its own and all are alike")
