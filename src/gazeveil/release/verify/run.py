"""`verify`: all questions about a release, asked in order."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gazeveil.errors import DataError, GazeveilError, ParameterError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording
from gazeveil.io.reading import read
from gazeveil.privacy.publication.certificate import PARTS, hashes, read_certificate
from gazeveil.privacy.publication.outputs import CHANNELS, makes_pieces
from gazeveil.privacy.publication.page import page
from gazeveil.release.inventory import inventory
from gazeveil.release.verify.files import (
    ReleasedFile,
    VerifiedRelease,
    VerifyCheck,
    check_file_contents,
    check_files,
    check_page,
    check_signature,
    released_file,
)
from gazeveil.release.verify.identifiers import (
    BINARY_DEG,
    FORMAT_WORDS,
    TEXT_DEG,
    check_file_times,
    check_identifiers,
    check_raw_rows,
    identifiers,
    texts_of,
)
from gazeveil.release.verify.promised import (
    FilesOfRelease,
    certified_mechanism,
    check_budget,
    check_contents,
    check_groups,
    check_pieces,
    check_table,
    look,
)

Progress = Callable[[Iterable[Recording], int, str], Iterable[Recording]]


def verify(
    folder: str | Path,
    against: str | Path | Cohort | None = None,
    key: str | None = None,
    progress: Progress = lambda recordings, count, what: recordings,
    source: str | Path | None = None,
    regions: str | Path | None = None,
) -> VerifiedRelease:
    """Check a release.

    Parameters
    ----------
    folder : path
        The release.
    against : path or Cohort, optional
        The recordings behind it: looked for in the release, row by row and name by name.
    key : str, optional
        The public key that must have signed it, as hexadecimal digits.
    progress : callable
        Wraps an iteration over so many recordings, for a progress bar.
    source : path, optional
        Where the recordings of a Cohort lie: names, dates and serial numbers in files that are not
        part of recordings are looked for too. A path in `against` says it already.
    regions : path, optional
        The file of regions that the certificate names. Without it such a file is looked for in the
        release alone: a certificate says what others open, so it may name no other place.

    Raises
    ------
    FormatError
        If the folder has no certificate, or the recordings cannot be read.

    Examples
    --------
    >>> import gazeveil, tempfile
    >>> cohort = gazeveil.simulate(4, 1, 2, 60, seed=1)
    >>> out = tempfile.mkdtemp() + "/out"
    >>> _ = gazeveil.protect(cohort, "gaussian:sigma_deg=5").write(out)
    >>> verify(out, against=cohort).passed
    True
    """
    place = Path(folder)
    certificate = read_certificate(place)
    try:
        hashed = hashes(place)
    except DataError as error:
        # A link leads out of the release and a pipe is waited for: nothing more is opened.
        return VerifiedRelease((VerifyCheck("files", (str(error),)),))
    files = FilesOfRelease(place, None if regions is None else Path(regions))
    found = [
        check_files(hashed, certificate),
        check_page(place, certificate),
        check_signature(place, key),
    ]
    kind = _kind(certificate, files)
    of_recordings = kind in ("stream", "cohort")
    released, problem = _released(place) if of_recordings else (None, "")
    file, unread = (None, "") if of_recordings else released_file(place, kind)
    raw = read(against) if isinstance(against, str | Path) else against
    try:
        if of_recordings:
            found += _inside(certificate, files, released, problem, raw, progress)
        else:
            found += [
                check_file_contents(certificate, file, unread),
                check_budget(certificate, files, None, file=file),
            ]
        if raw is not None:
            where = source if isinstance(against, Cohort) else against
            raw_files = None if where is None else Path(where)
            found += _against(files, certificate, released, raw, raw_files, progress, file)
    except ParameterError as error:
        found.append(VerifyCheck("certificate", (f"PRIVACY.json is not whole: {error}",)))
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        if isinstance(error, GazeveilError):
            raise
        found.append(VerifyCheck("certificate", (f"PRIVACY.json is not whole: {error!r}.",)))
    return VerifiedRelease(tuple(found))


def _kind(certificate: Mapping[str, Any], files: FilesOfRelease) -> str:
    """The kind of the mechanism; that of recordings where it cannot be made."""
    try:
        return certified_mechanism(certificate, files).kind
    except (GazeveilError, KeyError, TypeError, AttributeError):
        return "stream"


def _released(place: Path) -> tuple[Cohort | None, str]:
    try:
        with warnings.catch_warnings():
            # Which files the reader leaves out is no news: extra ones are named by their hashes.
            warnings.simplefilter("ignore")
            return read(place), ""
    except GazeveilError as error:
        return None, str(error)


def _inside(
    certificate: Mapping[str, Any],
    files: FilesOfRelease,
    released: Cohort | None,
    problem: str,
    raw: Cohort | None,
    progress: Progress,
) -> list[VerifyCheck]:
    """What the release itself shows."""
    if released is None:
        unread = [VerifyCheck("recordings", (problem,))] if problem else []
        return [*unread, check_budget(certificate, files, None)]
    try:
        recordings = look(released, lambda r: progress(r, len(released), "Reading the release"))
    except DataError as error:
        return [VerifyCheck("recordings", (str(error),)), check_budget(certificate, files, None)]
    # Whether they are pieces follows from the mechanism, whatever the certificate says besides.
    name = str(certificate.get("mechanism", {}).get("name", ""))
    return [
        check_contents(certificate, recordings),
        check_budget(certificate, files, released, raw),
        check_groups(certificate, recordings),
        *([check_pieces(recordings)] if makes_pieces(name) else []),
        check_table(certificate, released.people),
    ]


def _against(
    files: FilesOfRelease,
    certificate: Mapping[str, Any],
    released: Cohort | None,
    raw: Cohort,
    source: Path | None,
    progress: Progress,
    file: ReleasedFile | None,
) -> list[VerifyCheck]:
    """What the release shows of the recordings."""
    listed = [(f.kind, f.example) for f in inventory(source).findings] if source is not None else []
    wanted = identifiers(raw, source, listed)

    def noting(recordings: Iterable[Recording]) -> Iterator[Recording]:
        for recording in progress(recordings, len(raw), "Looking for raw rows"):
            for text, kind in texts_of(recording):
                wanted.setdefault(text, kind)
            yield recording

    found: list[VerifyCheck] = []
    if released is not None:
        # Text may be rounded: rows are then looked for a second time, less exactly.
        text = certificate.get("contents", {}).get("format") not in (None, "parquet")
        try:
            found.append(check_raw_rows(released, raw, BINARY_DEG, noting))
            if text and found[-1].passed:
                found[-1] = check_raw_rows(released, raw, TEXT_DEG)
        except DataError as error:
            found.append(VerifyCheck("raw rows", (str(error),)))
    else:
        for _ in noting(raw):
            pass
    names: set[str] = set() if file is None else {*file.people, *file.stimuli}
    public: set[str] = set()
    if released is not None:
        names = {name for item in released.items for name in item.key}
        public = {str(v) for attributes in released.people.values() for v in attributes.values()}
    kept = certificate.get("kept", ())
    public |= names & _public_names(certificate, raw)
    wanted = {t: k for t, k in wanted.items() if t not in public}
    words = f"{vocabulary(certificate, files)} {' '.join(sorted(public))}"
    found.append(check_identifiers(files.place, wanted, kept, words, names - public))
    if source is not None:
        found.append(check_file_times(files.place, source))
    return found


def _public_names(certificate: Mapping[str, Any], raw: Cohort) -> set[str]:
    """Names of stimuli and tasks that a release may hold: those of a list, or of the recordings'
    files themselves, and all where they were kept by name.
    """
    listed = {str(n) for n in certificate.get("alignment", {}).get("stimuli", ())}
    read_as = raw.read_as
    listed |= set() if read_as is None or read_as.stimuli is None else set(read_as.stimuli)
    kept = certificate.get("kept", ())
    for place, field in ((1, "stimulus"), (3, "task")):
        own = {key[place] for key in raw.keys}
        listed |= own if field in kept else own - raw.path_names
    return listed


def vocabulary(certificate: Mapping[str, Any], files: FilesOfRelease) -> str:
    """Collect the words in every release of this mechanism, for any participants."""
    chosen = certified_mechanism(certificate, files)
    words = [chosen.summary, chosen.label, chosen.name, *chosen.parameters(), *CHANNELS]
    # Names of files and of stimuli are data, and so is a part that no release has.
    ours = {k: v for k, v in certificate.items() if k in PARTS}
    ours["alignment"] = {k: v for k, v in ours.get("alignment", {}).items() if k != "stimuli"}
    return " ".join((*words, FORMAT_WORDS, page(ours), json.dumps(ours)))
