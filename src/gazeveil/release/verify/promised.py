"""Whether a release is what its certificate promises.

Rebuild the mechanism that a certificate names, and its promise, without trusting either.

A certificate is the publisher's text. It is parsed before a mechanism is built, because a mechanism
may open a file. A file named there must lie in the release itself, under a bare name, or be given
by the verifier.

The promise is computed again from the mechanism, its parameters and the released data. For a stream
mechanism it follows from the parameters and from the rates, spaces and lengths of the released
recordings. For one on tables or maps it follows from the released file. In both cases all numbers
are compared. The promise of a mechanism over people also depends on the raw recordings. There the
definition, the status and the numbers that are parameters are compared.

Whether groups are as large as promised, and whether names, times, rates and channels are as the
certificate says.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from gazeveil.errors import FormatError, GazeveilError, ParameterError
from gazeveil.gaze.cohort import Attributes, Cohort
from gazeveil.gaze.geometry import Screen, Space
from gazeveil.gaze.recording import Recording
from gazeveil.privacy import registry
from gazeveil.privacy.guarantee import OF_PEOPLE, Guarantee
from gazeveil.privacy.heatmaps import HeatmapMechanism
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.publication.certificate import per_person
from gazeveil.privacy.publication.outputs import CHANNELS, viewers_of
from gazeveil.privacy.rational import exact, format_exact
from gazeveil.privacy.stream.chain import Chain, stage_texts
from gazeveil.privacy.stream.kaleido.mechanism import by_radius, radius_in
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.registry import parse
from gazeveil.release.verify.files import ReleasedFile, VerifyCheck

_UNSET = "None"


@dataclass(frozen=True)
class FilesOfRelease:
    """Where files lie that a certificate names.

    Parameters
    ----------
    place : Path
        The release.
    regions : Path, optional
        The verifier's file of regions; it replaces any file named in the certificate.
    """

    place: Path
    regions: Path | None = None

    def find(self, parameter: str, named: object) -> str:
        """The path of a file that a parameter names; nothing is opened.

        Raises
        ------
        ParameterError
            For anything but a bare name, and for a link.
        """
        if self.regions is not None:
            return str(self.regions)
        name = str(named)
        folder = self.place.parent if self.place.is_file() else self.place
        path = folder / PurePosixPath(name).name
        bare = name == PurePosixPath(name).name == PureWindowsPath(name).name
        if not bare or not name.isprintable() or path.is_symlink():
            raise ParameterError(
                f"The certificate's '{parameter}' must be the bare name of a file in the release."
                f" Got {name[:100]!r} instead, which is not opened.",
                name=parameter,
                got=name,
            )
        return str(path)


def certified_mechanism(certificate: Mapping[str, Any], files: FilesOfRelease) -> Mechanism[Any]:
    """The mechanism that a certificate names, with its parameters.

    Raises
    ------
    GazeveilError
        If there is none of that name, a parameter is not allowed, or a file is not there that it
        cannot be made without.
    """
    made = certificate["mechanism"]
    given = {k: v for k, v in made["parameters"].items() if v != _UNSET}
    text = ",".join(f"{k}={v}" for k, v in {**given, "reading": made["reading"]}.items())
    return _made(f"{made['name']}:{text}", files)


def _made(text: str, files: FilesOfRelease) -> Mechanism[Any]:
    name, written = parse(text)
    for parameter in registry.get(name).files:
        if written.get(parameter) is not None:
            written[parameter] = files.find(parameter, written[parameter])
    if name == Chain.name:
        # A chain asks its stages for their promises when it is made, and they open their files.
        stages = stage_texts(str(written.get("stages", "")))
        written["stages"] = [_made(stage, files) for stage in stages]
    return registry.mechanism(name, **written)


_NAME = "promise"

#: What a guarantee says that follows from the mechanism alone, and from the recordings besides.
_OF_MECHANISM = ("definition", "unit", "neighbours", "numbers", "status")
_OF_RECORDINGS = (*_OF_MECHANISM, "user", "losses", "also")


def check_budget(
    certificate: Mapping[str, Any],
    files: FilesOfRelease,
    released: Cohort | None,
    raw: Cohort | None = None,
    file: ReleasedFile | None = None,
) -> VerifyCheck:
    """Work the promise out again and compare, also what the certificate says in several places.

    Parameters
    ----------
    certificate : mapping
        Of the release.
    files : FilesOfRelease
        Where files lie that it names.
    released : Cohort, optional
        Its recordings; None where they cannot be read.
    raw : Cohort, optional
        The recordings behind it: where they were put on the public clock after the protection,
        what a person adds up to follows from them.
    file : ReleasedFile, optional
        Its one file, where it is not made of recordings.
    """
    found = _worked_out(certificate, files, released, raw, file)
    return replace(found, failures=(*found.failures, *contradictions(certificate)))


def _worked_out(
    certificate: Mapping[str, Any],
    files: FilesOfRelease,
    released: Cohort | None,
    raw: Cohort | None,
    file: ReleasedFile | None,
) -> VerifyCheck:
    try:
        chosen = certified_mechanism(certificate, files)
    except GazeveilError as error:
        return VerifyCheck(_NAME, (f"The certificate's mechanism cannot be made: {error}",))
    except (KeyError, TypeError, AttributeError):
        return VerifyCheck(_NAME, ("The certificate does not name its mechanism as it must.",))
    if file is not None and (promise := _of_file(chosen, file)) is not None:
        expected = promise.tested() if certificate.get("seeded") else promise
        unlike = (*_differences(certificate, expected, True), *_unsaid(certificate, expected))
        return VerifyCheck(_NAME, unlike, "worked out again from mechanism and file")
    if not (isinstance(chosen, StreamMechanism) and chosen.stride == 1):
        return _by_parameters(certificate, chosen)
    before = certificate.get("alignment", {}).get("before_protection", True)
    protected = released if before else raw
    shapes = released if protected is None else protected
    if shapes is None:
        return VerifyCheck(_NAME, note="not worked out again: the recordings cannot be read")
    try:
        expected = _expected(chosen, certificate, shapes)
    except FormatError as error:
        # A certificate says what its files are called and not where they lie.
        return _with_stated_r(certificate, chosen, shapes, protected is not None, error)
    failures = _differences(certificate, expected, whole=protected is not None)
    note = "worked out again from mechanism and recordings"
    if protected is None:
        note += "; what a person adds up to follows from those behind the release (--against)"
    return VerifyCheck(_NAME, tuple(failures), note)


def _of_file(chosen: Mechanism[Any], file: ReleasedFile) -> Guarantee | None:
    """What the mechanism promises for a file of this shape; None where that does not follow."""
    if isinstance(chosen, HeatmapMechanism):
        return chosen.promise(max(1, len(file.stimuli)))
    if file.table is None:
        return None
    try:
        # A released table has the people, recordings, rows and bounds that its promise counts.
        return chosen.release(file.table).guarantee
    except GazeveilError:
        return None


def _unsaid(certificate: Mapping[str, Any], expected: Guarantee) -> Iterator[str]:
    """What the mechanism assumes or leaves out, and the certificate does not say."""
    claimed = certificate["guarantee"]
    for name, clauses in (
        ("assumptions", expected.assumptions),
        ("not_covered", expected.not_covered),
    ):
        for clause in clauses:
            if clause not in claimed.get(name, ()):
                yield f"The certificate's '{name}' leaves out: {_short(clause)}."


def _with_stated_r(
    certificate: Mapping[str, Any],
    chosen: StreamMechanism,
    shapes: Cohort,
    whole: bool,
    missing: FormatError,
) -> VerifyCheck:
    """Everything but r, which follows from a file that is not there: the certificate's own r is
    taken, and all the rest must be what a mechanism with that r promises.
    """
    claimed = certificate["guarantee"]
    try:
        r_deg = exact("certificate", "r_deg", str(claimed["numbers"]["r_deg"]))
        expected = _expected(chosen.without_files(r_deg), certificate, shapes)
        radii_deg = [radius_in(str(line["condition"])) for line in claimed["also"]]
    except (KeyError, TypeError, ValueError):
        return VerifyCheck(_NAME, ("The certificate's r is not a number of degrees.",))
    each = [r for r in radii_deg if r is not None]
    if each and min(each) != r_deg:
        return VerifyCheck(
            _NAME, (f"The certificate promises r = {r_deg}, and not the least r of a stimulus.",)
        )
    if each and expected.losses is not None and expected.change is not None:
        window = expected.losses.loss(expected.change)
        lines = by_radius(int(expected.numbers["w_samples"]), each, window)
        expected = replace(expected, also=(*lines, *expected.also))
    return VerifyCheck(
        _NAME,
        tuple(_differences(certificate, expected, whole)),
        f"worked out again from mechanism and recordings with r = {format_exact(r_deg, down=True)}"
        " degrees as the certificate has it. That r was not compared, which takes the file of"
        f" regions (--regions): {missing}",
    )


def _differences(certificate: Mapping[str, Any], expected: Guarantee, whole: bool) -> Iterator[str]:
    """Where the certificate says something else than the promise that was worked out."""
    claimed, derived = certificate["guarantee"], expected.to_dict()
    same = True
    for name in _OF_RECORDINGS if whole else _OF_MECHANISM:
        if claimed.get(name) != derived[name]:
            same = False
            yield (
                f"The certificate's '{name}' is {_short(claimed.get(name))}, and its mechanism and"
                f" recordings give {_short(derived[name])}."
            )
    if not whole:
        return
    if certificate.get("per_person") != per_person(expected):
        same = False
        yield "What one person adds up to is not what the mechanism and the recordings give."
    worded = replace(
        expected,
        assumptions=tuple(claimed.get("assumptions", ())),
        not_covered=tuple(claimed.get("not_covered", ())),
        reason=str(claimed.get("reason", "")),
    )
    if same and certificate.get("sentence") != str(worded):
        yield "The sentence of the certificate is not that of its guarantee."


def _expected(
    chosen: StreamMechanism, certificate: Mapping[str, Any], released: Cohort
) -> Guarantee:
    # The promise depends on the shapes of recordings alone; nothing is protected here, because a
    # release of files is lazy.
    promise = chosen.release(released).guarantee
    return promise.tested() if certificate.get("seeded") else promise


def _by_parameters(certificate: Mapping[str, Any], chosen: Mechanism[Any]) -> VerifyCheck:
    claimed, claim = certificate["guarantee"], chosen.claim
    status = claim.status
    if certificate.get("seeded") and status == "proved":
        status = "claimed"
    failures = [
        f"The certificate's '{name}' is {claimed.get(name)!r}, and {chosen.title} has {value!r}."
        for name, value in (("definition", claim.definition), ("status", status))
        if claimed.get(name) != value and claim.definition != "none"
    ]
    parameters, numbers = chosen.parameters(), claimed.get("numbers", {})
    for name, parameter in (("k", "k"), ("epsilon", "epsilon"), ("w_samples", "w")):
        wanted = parameters.get(parameter)
        if name in numbers and wanted is not None and not _equal(numbers[name], wanted):
            failures.append(
                f"The certificate promises {name} = {numbers[name]}, and its mechanism was made"
                f" with {parameter} = {wanted}."
            )
    note = "definition, status and parameters fit; its numbers follow from the recordings"
    return VerifyCheck(_NAME, tuple(failures), note)


def _equal(text: object, wanted: object) -> bool:
    try:
        return exact("certificate", "number", str(text)) == Fraction(str(wanted))
    except ValueError:
        return False


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."


#: What stands in the guarantee, and beside it for the page.
_TWICE = {"assumptions": "what it assumes", "not_covered": "what is not covered"}


def contradictions(certificate: Mapping[str, Any]) -> Iterator[str]:
    """Where a certificate contradicts itself."""
    guarantee, sentence = certificate["guarantee"], str(certificate.get("sentence"))
    # What promises nothing says so in a sentence without clauses.
    proved = guarantee.get("status") == "proved"
    if proved and guarantee.get("definition") == "none":
        yield "The certificate calls proved what promises nothing."
    for name, words in _TWICE.items():
        clauses = guarantee.get(name)
        if certificate.get(name) != clauses:
            yield f"PRIVACY.json says two things about {words}."
        elif proved and not all(str(clause) in sentence for clause in clauses or ()):
            yield f"The sentence of the certificate leaves out {words}."
    stated = certificate.get("per_person", {})
    if stated.get("status", guarantee.get("status")) != guarantee.get("status"):
        yield "What one person adds up to has another status than the promise."
    # The numerical error is left out, which the guarantee has for its own change alone.
    numbers = {k: v for k, v in stated.get("numbers", {}).items() if k != "delta_num"}
    of_people = guarantee.get("definition") in OF_PEOPLE
    if numbers != dict(guarantee.get("numbers" if of_people else "user", {})):
        yield "What one person adds up to is not what the guarantee says."


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
        f" are promised: {_few(shape)}."
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


def _few(value: object) -> str:
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
