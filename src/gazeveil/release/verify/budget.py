"""Rebuild the mechanism that a certificate names, and its promise, without trusting either.

A certificate is the publisher's text. It is parsed before a mechanism is built, because a mechanism
may open a file. A file named there must lie in the release itself, under a bare name, or be given
by the verifier.

The promise is computed again from the mechanism, its parameters and the released data. For a stream
mechanism it follows from the parameters and from the rates, spaces and lengths of the released
recordings. For one on tables or maps it follows from the released file. In both cases all numbers
are compared. The promise of a mechanism over people also depends on the raw recordings. There the
definition, the status and the numbers that are parameters are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from gazeveil.errors import FormatError, GazeveilError, ParameterError
from gazeveil.gaze.cohort import Cohort
from gazeveil.privacy import registry
from gazeveil.privacy.guarantee import OF_PEOPLE, Guarantee
from gazeveil.privacy.heatmaps import HeatmapMechanism
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.publication.certificate import per_person
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
