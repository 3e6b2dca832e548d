"""What `gazeveil datasets` tells: each known dataset, and whether a folder is one of them.

:func:`check` opens every recording's file once, so a large dataset takes as long as reading it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from gazeveil import checks
from gazeveil.errors import DataError, FormatError
from gazeveil.gaze.cohort import Cohort, Skipped
from gazeveil.gaze.recording import Recording
from gazeveil.io import registry
from gazeveil.io.reading import read

_MOST_PROBLEMS = 10

#: Files with a fixed name that belong to a dataset.
_NAMED_FILES = {
    "360-em": ("participant_info.csv",),
    "et-dk2": ("img_index.csv",),
    "dgaze": ("trainingX.npy", "trainingY.npy", "testX.npy", "testY.npy"),
    "ehtask": (
        "trainingX.npy",
        "trainingY.npy",
        "testX.npy",
        "testY.npy",
        "testRecordingLabel.npy",
    ),
    "irf": ("db_config.json",),
    "osie": ("fixations.mat",),
}


@dataclass(frozen=True)
class DatasetEntry:
    """One public dataset.

    Parameters
    ----------
    format : str
        Name for `read(path, format=...)`.
    title, publisher, licence, citation : str
        As the publisher says.
    layout : str
        Files and folders expected.
    options : tuple of str
        Options of `read` for this format.
    """

    format: str
    title: str
    publisher: str
    licence: str
    citation: str
    layout: str
    options: tuple[str, ...] = ()

    def text(self) -> str:
        """Some lines for reading."""
        lines = [f"{self.title} (format '{self.format}')"]
        lines += [
            f"  {name:<10} {getattr(self, name)}"
            for name in ("publisher", "licence", "citation", "layout")
        ]
        if self.options:
            lines.append(f"  {'options':<10} {', '.join(self.options)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class DatasetCheck:
    """What a folder holds, against a dataset's layout.

    Parameters
    ----------
    path : str
        What was checked.
    format : str
        The dataset, or "unknown".
    layout : str
        What was expected.
    recordings, people, stimuli, samples, events : int
        Counts of what could be read.
    skipped : tuple of Skipped
        Files that are not part of the dataset, and why.
    problems : tuple of str
        One sentence per recording that could not be read, at most ten.
    broken : int
        How many recordings could not be read.
    missing : tuple of str
        Files with a fixed name that the layout has and the folder has not; some of them are
        optional.
    """

    path: str
    format: str
    layout: str
    recordings: int = 0
    people: int = 0
    stimuli: int = 0
    samples: int = 0
    events: int = 0
    skipped: tuple[Skipped, ...] = ()
    problems: tuple[str, ...] = ()
    broken: int = 0
    missing: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there are recordings and all could be read."""
        return self.recordings > 0 and not self.problems

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.format}" + ("" if self.ok else ", with problems")]
        if self.recordings:
            contents = (
                f"{self.samples} samples"
                if self.samples or not self.events
                else f"{self.events} fixations, no samples"
            )
            lines.append(
                f"  {self.recordings} recordings, {self.people} people, {self.stimuli} stimuli,"
                f" {contents}"
            )
        if self.layout:
            lines.append(f"  expected layout: {self.layout}")
        if self.missing:
            lines.append(f"  not there: {', '.join(self.missing)}")
        reasons = Counter(s.reason for s in self.skipped)
        lines += [
            f"  skipped {n} file{'s' if n > 1 else ''}: {reason}"
            for reason, n in reasons.most_common()
        ]
        lines += [f"  problem: {p}" for p in self.problems]
        if self.broken > len(self.problems):
            lines.append(f"  and {self.broken - len(self.problems)} more problems")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {**asdict(self), "ok": self.ok}


#: Listed so that who looks for it learns why it cannot be read.
_OPENNEEDS = DatasetEntry(
    format="openneeds",
    title="OpenNEEDS",
    publisher="Emery, Zannoli, Warren, Xiao, Talathi (Facebook Reality Labs)",
    licence="on request from the publisher",
    citation=(
        "Emery et al. 2021, OpenNEEDS: a dataset of gaze, head, hand, and scene signals during"
        " exploration in open-ended VR environments, ETRA"
    ),
    layout=(
        "not public, so there is no reader: write the recordings as CSV and read them with"
        " format='csv'"
    ),
)


def describe() -> list[DatasetEntry]:
    """All known public datasets, by format name."""
    return [entry(name) for name in _names()]


def _names() -> list[str]:
    """Formats of public datasets: ours by code or by a shipped description, and others' own."""
    ours = [name for name, module in registry.MODULES.items() if module.startswith("datasets.")]
    ours += [name for name in registry.KNOWN if registry.get(name).dataset is not None]
    added = registry.REGISTRY.added().items()
    others = [name for name, form in added if form.dataset is not None]
    return sorted([*ours, *others, *registry.WITHOUT_READER])


def entry(name: str) -> DatasetEntry:
    """One dataset.

    Raises
    ------
    ParameterError
        For a name that is not a dataset's.
    """
    if checks.one_of("datasets", "name", name, _names()) == _OPENNEEDS.format:
        return _OPENNEEDS
    form = registry.get(name)
    assert form.dataset is not None
    # A shipped description says what its tables need.
    options = () if name in registry.KNOWN else tuple(sorted(form.options))
    return DatasetEntry(form.name, **asdict(form.dataset), options=options)


def check(path: str | Path, name: str | None = None, **options: object) -> DatasetCheck:
    """Read everything under a path and say what was found. The dataset is found by looking at the
    files if it is not named; options are as for `read`.

    Raises
    ------
    ParameterError
        For a name that is not a dataset's.
    """
    place = Path(path)
    expected = None if name is None else entry(name)
    layout = "" if expected is None else expected.layout
    try:
        cohort = read(place, name, **options)
    except (FormatError, DataError) as error:
        return DatasetCheck(
            str(place),
            name or "unknown",
            layout,
            problems=(str(error),),
            broken=1,
            missing=_missing(place, name or ""),
        )
    dataset = expected or _format_of(cohort)
    problems: list[str] = []
    broken = samples = events = 0
    for item in cohort.items:
        try:
            recording = item if isinstance(item, Recording) else item.load()
        except (FormatError, DataError) as error:
            broken += 1
            if len(problems) < _MOST_PROBLEMS:
                problems.append(str(error))
            continue
        samples += len(recording)
        events += 0 if recording.events is None else len(recording.events)
    return DatasetCheck(
        path=str(place),
        format="unknown" if dataset is None else dataset.format,
        layout="" if dataset is None else dataset.layout,
        recordings=len(cohort),
        people=len(cohort.people),
        stimuli=len(cohort.stimuli),
        samples=samples,
        events=events,
        skipped=cohort.skipped,
        problems=tuple(problems),
        broken=broken,
        missing=() if dataset is None else _missing(place, dataset.format),
    )


def _missing(place: Path, name: str) -> tuple[str, ...]:
    """Named files that are neither under the folder nor beside it."""
    if not place.is_dir():
        return ()
    present = {
        p.name.removesuffix(".gz")
        for p in (*place.rglob("*"), *place.parent.glob("*"))
        if p.is_file()
    }
    return tuple(n for n in _NAMED_FILES.get(name, ()) if n not in present)


def _format_of(cohort: Cohort) -> DatasetEntry | None:
    """The dataset of the first recording's file."""
    source = next((i.source for i in cohort.items if i.source), "")
    form = registry.sniff(Path(source)) if source else None
    if form is None:
        return None
    return (
        entry(form.name)
        if form.dataset is not None
        else DatasetEntry(form.name, form.title, "", "", "", "")
    )
