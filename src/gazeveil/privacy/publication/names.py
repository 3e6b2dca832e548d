"""Published names: fresh pseudonyms, sessions numbered in a random order, stimuli and tasks that
pass an allow-list, and recordings in a random order.

The key of pseudonyms: who is who, for the holder of the raw data alone.

It is written apart from the release, for its owner only (mode 0600), and never over an existing
file. Evaluation reads it as ground truth; attackers never do.

The table of people has age and gender in groups of at least k who are alike. A person without an
attribute would stand out by the gap. So the number of people without a row is zero or at least k.
Where neither is possible, an attribute is left out, or the table.

Options of a publication; every default is the safe one.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gazeveil import checks
from gazeveil.errors import DataError, FormatError
from gazeveil.gaze.cohort import Attributes, Cohort, Handle
from gazeveil.gaze.recording import KEY_NAMES, Recording, RecordingKey
from gazeveil.privacy.demographics import Demographics
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.randomness.supply import derived_seed
from gazeveil.privacy.rational import Number, exact

#: Fields that are made anew unless `keep` names them, and what is then not covered.
FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "person": "the names of people",
        "session": "the names of sessions",
        "stimulus": "the names of stimuli",
        "task": "the names of tasks",
        "times": "the tracker's own times",
        "rate": "the rate of each recording",
        "attributes": "the attributes of people",
    }
)

#: Other names of channels that `keep` of a stream mechanism takes.
SYNONYMS: Mapping[str, str] = MappingProxyType({"t_ns": "times"})

_MOST_HZ = 100_000


@dataclass(frozen=True)
class PublicationChoices:
    """Choices of a publication.

    Parameters
    ----------
    keep : tuple of str
        Fields that go out as they are: those of :data:`FIELDS`, channels that the release kept, or
        single attributes of people. Each is printed under what is not covered.
    to : str
        The format: `parquet`, `csv`, `bids` or `same`.
    rate_hz : number, optional
        The public rate in Hz; left out, the usual rate nearest to those of the recordings.
    durations : {"keep", "common"} or mapping of stimulus to seconds
        The public lengths of recordings. `keep`: each has its own, which is then not covered.
        `common`: all recordings of a stimulus get the median length of them, cut or filled up with
        lost samples. Stimuli are named as in the input.
    k : int
        People who must share a row of the people's table.
    stimuli : tuple of str, optional
        Names of stimuli and tasks that may be published, as in the input; all others become
        `stimulus-001` and so on. Left out, a name passes that at least two people have in common
        and that looks like neither a person, a date, a clock nor a path.
    key_file : Path, optional
        Where the key of the pseudonyms goes, with mode 0600; never inside the release. Left out, no
        key is written.
    """

    keep: tuple[str, ...] = ()
    to: str = "parquet"
    rate_hz: Number | None = None
    durations: str | Mapping[str, Number] = "keep"
    k: int = field(default=4, kw_only=True)
    stimuli: tuple[str, ...] | None = field(default=None, kw_only=True)
    key_file: Path | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        store = object.__setattr__
        store(self, "keep", _names("keep", self.keep))
        checks.one_of("publication", "to", self.to, ("parquet", "csv", "bids", "same"))
        checks.count("publication", "k", self.k, least=2)
        if self.rate_hz is not None:
            rate = exact("publication", "rate_hz", self.rate_hz, above=0)
            if rate > _MOST_HZ:
                checks.refuse("publication", "rate_hz", f"at most {_MOST_HZ}", self.rate_hz)
            store(self, "rate_hz", rate)
            for field_name in ("times", "rate"):
                if field_name in self.keep:
                    checks.refuse(
                        "publication", "rate_hz", f"left out where '{field_name}' is kept", rate
                    )
        if isinstance(self.durations, str):
            checks.one_of("publication", "durations", self.durations, ("keep", "common"))
        elif isinstance(self.durations, Mapping):
            stored = {
                str(s): exact("publication", "durations", d, above=0)
                for s, d in self.durations.items()
            }
            store(self, "durations", stored)
        else:
            checks.refuse(
                "publication",
                "durations",
                "keep, common, or a mapping of stimulus to seconds",
                self.durations,
            )
        if self.durations != "keep" and "times" in self.keep:
            checks.refuse("publication", "durations", "keep where times are kept", self.durations)
        if self.stimuli is not None:
            store(self, "stimuli", _names("stimuli", self.stimuli))
        if self.key_file is not None:
            store(self, "key_file", Path(self.key_file))

    @property
    def public_rate_hz(self) -> Fraction | None:
        """The rate that was chosen, exact."""
        return None if self.rate_hz is None else Fraction(self.rate_hz)


def _names(name: str, value: Iterable[str] | str) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    for each in names:
        if not isinstance(each, str) or not each:
            checks.refuse("publication", name, "names", each)
    return tuple(dict.fromkeys(SYNONYMS.get(n, n) if name == "keep" else n for n in names))


_DIGITS = 8  # hexadecimal ones of a pseudonym

# Dates, clock times, Unix times in seconds to nanoseconds, e-mail addresses and paths.
_TELLING = re.compile(
    r"(?<!\d)(19|20)\d\d[-_./ ]?[01]\d[-_./ ]?[0-3]\d(?!\d)"
    r"|(?<!\d)[0-3]?\d[./-][01]?\d[./-](19|20)?\d\d(?!\d)"
    r"|(?<!\d)[012]?\d[:h][0-5]\d(?!\d)"
    r"|(?<!\d)1[0-9]\d{8}(\d{3}){0,3}(?!\d)"
    r"|@|[/\\]"
)


def chance(seed: int | None) -> random.Random:
    """Where names and orders come from: the operating system, or a test stream."""
    if seed is None:
        return random.SystemRandom()
    return random.Random(derived_seed(seed, "publication"))


@dataclass(frozen=True)
class PublicNames:
    """Raw keys (person, stimulus, session, task) of recordings and published ones, in the published
    order.
    """

    recordings: Mapping[RecordingKey, RecordingKey]

    @property
    def people(self) -> dict[str, str]:
        """Person -> published name, in the published order."""
        return self._of(0)

    @property
    def stimuli(self) -> dict[str, str]:
        """Stimulus -> published name."""
        return self._of(1)

    def _of(self, place: int) -> dict[str, str]:
        return {raw[place]: public[place] for raw, public in self.recordings.items()}

    def to_list(self) -> list[list[list[str]]]:
        """The names as JSON has them."""
        return [[list(raw), list(public)] for raw, public in self.recordings.items()]

    @classmethod
    def from_list(cls, stored: Iterable[Any]) -> PublicNames:
        """What :meth:`to_list` wrote."""
        pairs = [(recording_key(raw), recording_key(public)) for raw, public in stored]
        return cls(dict(pairs))


def recording_key(names: Iterable[str]) -> RecordingKey:
    """The key that some four names are."""
    person, stimulus, session, task = map(str, names)
    return person, stimulus, session, task


def public_names(
    keys: Sequence[RecordingKey],
    choices: PublicationChoices,
    source: random.Random,
    people: Iterable[str] = (),
    hidden: Collection[str] = (),
) -> PublicNames:
    """Names for recordings with these keys, drawn anew from a source (:func:`chance`). The choices
    say what is kept, and which names of stimuli may pass; `people` are further names that no
    stimulus may carry: of the people behind pieces. `hidden` names of stimuli pass where they are
    kept or listed alone.
    """
    keep = choices.keep
    everybody = sorted({k[0] for k in keys})
    named = {p: p for p in everybody} if "person" in keep else pseudonyms(everybody, source)
    carried = {*everybody, *people}
    texts = [
        _passed(keys, place, field, choices, source, carried, hidden)
        for place, field in ((1, "stimulus"), (3, "task"))
    ]
    of_person: dict[str, set[str]] = {}
    for key in keys:
        of_person.setdefault(key[0], set()).add(key[2])
    sessions: dict[tuple[str, str], str] = {}
    for person in everybody:
        own = sorted(of_person[person])
        source.shuffle(own)
        for number, session in enumerate(own, start=1):
            sessions[person, session] = session if "session" in keep else str(number)
    order = sorted(keys)
    source.shuffle(order)
    return PublicNames(
        {k: (named[k[0]], texts[0][k[1]], sessions[k[0], k[2]], texts[1][k[3]]) for k in order}
    )


def pseudonyms(people: Sequence[str], source: random.Random) -> dict[str, str]:
    """A fresh random name for each person, in a random order."""
    shuffled = list(people)
    source.shuffle(shuffled)
    found: dict[str, str] = {}
    taken: set[str] = set()
    for person in shuffled:
        name = ""
        while not name or name in taken:
            name = f"p{source.getrandbits(4 * _DIGITS):0{_DIGITS}x}"
        found[person] = name
        taken.add(name)
    return found


def _passed(
    keys: Sequence[RecordingKey],
    place: int,
    field: str,
    choices: PublicationChoices,
    source: random.Random,
    carried: Collection[str],
    hidden: Collection[str],
) -> dict[str, str]:
    """Names of stimuli or tasks: as they are where they may pass, else numbered."""
    seen: dict[str, set[str]] = {}
    for key in keys:
        seen.setdefault(key[place], set()).add(key[0])
    if field in choices.keep:
        return {name: name for name in seen}
    if choices.stimuli is not None:
        allowed = {*choices.stimuli, ""}
    else:
        allowed = {*names_that_pass(keys, place, carried).difference(hidden), ""}
    other = sorted(set(seen) - allowed)
    source.shuffle(other)
    numbers = (f"{field}-{i:03d}" for i in range(1, len(seen) * 2 + 2))
    free = (n for n in numbers if n not in seen)
    replaced = {name: next(free) for name in other}
    return {name: replaced.get(name, name) for name in seen}


def names_that_pass(
    keys: Sequence[RecordingKey], place: int = 1, people: Collection[str] | None = None
) -> set[str]:
    """Names of stimuli that may be published without being listed: at least two people have them,
    where there are two, and they carry none of `people`, by default those of the keys. `place` is
    that of the name in a key.
    """
    seen: dict[str, set[str]] = {}
    for key in keys:
        seen.setdefault(key[place], set()).add(key[0])
    everybody = {k[0] for k in keys}
    enough, carried = min(2, len(everybody)), everybody if people is None else people
    return {n for n, who in seen.items() if len(who) >= enough and not tells(n, carried)}


def tells(name: str, people: Iterable[str]) -> bool:
    """Whether a name of a stimulus looks like it carries a person, a date, a clock or a path.

    Examples
    --------
    >>> tells("golf_clip", {"anna"}), tells("golf_anna_2", {"anna"}), tells("2021-08-19", {})
    (False, True, True)
    """
    if _TELLING.search(name):
        return True
    low = name.lower()
    words = set(re.split(r"[\W_]+", low))
    for person in people:
        own = person.lower()
        if own.isdigit() and len(own) < 5:
            continue  # a short number is in half of all names
        if own and (own in words or own == low or (len(own) >= 4 and own in low)):
            return True
    return False


def allowed_names(
    choices: PublicationChoices, raw: Cohort | Recording | None, keys: Iterable[RecordingKey]
) -> tuple[PublicationChoices, frozenset[str]]:
    """The choices with the list of public names that came with the raw recordings, where they have
    none of their own, and the names of stimuli and tasks that were taken from paths. Without the
    raw recordings all names of `keys` may be such.
    """
    if raw is None:
        return choices, frozenset(name for key in keys for name in (key[1], key[3]))
    cohort = Cohort([raw]) if isinstance(raw, Recording) else raw
    listed = None if cohort.read_as is None else cohort.read_as.stimuli
    own = listed if choices.stimuli is None else choices.stimuli
    return replace(choices, stimuli=own), cohort.path_names


def listed_stimuli(choices: PublicationChoices, names: PublicNames) -> dict[str, list[str]]:
    """The names of a release that pass because they are on a list, for its certificate."""
    if choices.stimuli is None:
        return {}
    public = {name for key in names.recordings.values() for name in (key[1], key[3])}
    return {"stimuli": [name for name in choices.stimuli if name in public]}


def check_names(choices: PublicationChoices, keys: Sequence[RecordingKey]) -> None:
    """Refuse an allow-list with an unknown name: a misspelt one would be ignored silently."""
    known = ({k[1] for k in keys} | {k[3] for k in keys}) - {""}
    for name in choices.stimuli or ():
        checks.one_of("publication", "stimuli", name, known)


_FORMAT = "gazeveil-pseudonym-key"
_VERSION = 1

_TAKEN = "{} exists already, and a key is never overwritten. Name another file."


def check_key_file(path: Path, out: Path) -> None:
    """Refuse a key file that exists, or that would be published with the release (the folder or
    file `out`).
    """
    if path.exists():
        raise DataError(
            f"{path} exists already, and a key is never overwritten. Name another file."
        )
    if out.resolve() in path.resolve().parents or path.resolve() == out.resolve():
        raise DataError(
            f"{path} is inside the release {out}: whoever gets the release would know who is who."
            " Name a file elsewhere."
        )


def write_key(path: Path, names: PublicNames) -> None:
    """Write who is who, readable for the owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = {"format": _FORMAT, "version": _VERSION, "recordings": names.to_list()}
    text = json.dumps(stored, indent=1, ensure_ascii=False) + "\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise DataError(_TAKEN.format(path)) from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def read_key(path: Path) -> PublicNames:
    """Read who is who.

    Raises
    ------
    FormatError
        For a file that :func:`write_key` did not write.
    """
    problem = "this is not a key of pseudonyms", "Name the file of `--key-file`."
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["format"] != _FORMAT or stored["version"] != _VERSION:
            raise FormatError(path, *problem)
        return PublicNames.from_list(stored["recordings"])
    except (UnicodeDecodeError, ValueError, TypeError, KeyError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(path, *problem) from error


def raw_names(copy: Cohort, names: PublicNames, people: Mapping[str, Attributes]) -> Cohort:
    """Return a published copy under the raw names of its key, for evaluation. `people` holds the
    true attributes of people, by raw name.

    Raises
    ------
    DataError
        If the key is that of another release.
    """
    back = {public: raw for raw, public in names.recordings.items()}
    unknown = [key for key in copy.keys if key not in back]
    if unknown:
        raise DataError(
            f"The key does not know {len(unknown)} of the {len(copy)} recordings of the copy, e.g."
            f" that of person '{unknown[0][0]}'. It belongs to another release."
        )
    items = [_renamed(item, back[item.key]) for item in copy.items]
    recorded = {item.person for item in items}
    attributes = {p: a for p, a in people.items() if p in recorded}
    return Cohort(items, attributes, copy.skipped, copy.name, copy.read_as)


def _renamed(item: Recording | Handle, key: RecordingKey) -> Recording | Handle:
    keys = dict(zip(KEY_NAMES, key, strict=True))
    if isinstance(item, Recording):
        return item.with_(**keys)
    return replace(
        item,
        **keys,  # type: ignore[arg-type]
        load=partial(_load, item.load, keys),
        chunks=None,
    )


def _load(load: Callable[[], Recording], keys: dict[str, str]) -> Recording:
    return load().with_(**keys)


# --- the table of people
# --------------------------------------------------------------------------------------------------


# Words for an attribute that is generalised, and its published name.
_KNOWN = {"age": "age", "gender": "gender", "sex": "gender"}

_CHOICES = (("age", "gender"), ("age",), ("gender",))


@dataclass(frozen=True)
class PeopleTable:
    """The published table of people, by raw name; people without a row have no entry. `guarantee`
    is that of the generalised attributes, None where none are published. `kept` are released
    unchanged; notes are sentences for the curator.
    """

    rows: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    guarantee: Guarantee | None = None
    kept: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def attribute_names(people: Mapping[str, Mapping[str, object]]) -> tuple[str, ...]:
    """All attributes that anybody has."""
    return tuple(dict.fromkeys(n for attributes in people.values() for n in attributes))


def people_table(
    people: Mapping[str, Mapping[str, object]], choices: PublicationChoices
) -> PeopleTable:
    """Generalise what is known about everybody who has a recording in the release."""
    names = attribute_names(people)
    if not names:
        return PeopleTable()
    if "attributes" in choices.keep:
        return PeopleTable({p: dict(a) for p, a in people.items()}, None, names)
    kept = tuple(n for n in names if n in choices.keep)
    groups, promise, notes = _generalised(people, choices.k, kept)
    rows = {
        p: {**groups.get(p, {}), **{n: a[n] for n in kept if n in a}} for p, a in people.items()
    }
    rows = {p: row for p, row in rows.items() if row}
    published = {n for row in groups.values() for n in row}
    dropped = [n for n in names if n not in kept and _KNOWN.get(n.lower()) not in published]
    if dropped:
        notes = (*notes, f"Not published about people: {', '.join(dropped)}.")
    return PeopleTable(rows, promise, kept, notes)


def _generalised(
    people: Mapping[str, Mapping[str, object]], k: int, kept: tuple[str, ...]
) -> tuple[Mapping[str, Mapping[str, object]], Guarantee | None, tuple[str, ...]]:
    """Groups of people, what they promise, and notes."""
    usual = {
        p: {
            _KNOWN[n.lower()]: v
            for n, v in attributes.items()
            if n.lower() in _KNOWN and n not in kept
        }
        for p, attributes in people.items()
    }
    notes: list[str] = []
    for attributes in _CHOICES:
        whole = {p: a for p, a in usual.items() if all(_is_known(a.get(n)) for n in attributes)}
        if not whole:
            continue
        without = len(people) - len(whole)
        words = " and ".join(attributes)
        if len(whole) < k or 0 < without < k:
            few = f"{len(whole)} people have them and {without} have not"
            notes.append(f"Not published: {words} of people, because {few}, and k is {k}.")
            continue
        try:
            release = Demographics(k, attributes=attributes).release(whole)
        except DataError as error:
            notes.append(f"Not published: {words} of people. {error}")
            continue
        if without:
            notes.append(f"{without} people have no row in the people's table.")
        return release.data, release.guarantee, tuple(notes)
    return {}, None, tuple(notes)


def _is_known(value: object) -> bool:
    # NaN is the one value that is not itself.
    return value is not None and value != "" and value == value
