"""Person, stimulus, session and task of a recording, from options, its file or its place: the rule
all vendor readers share.

Where the file itself does not say, the person is the folder the file lies in and the stimulus the
file name without its suffix; a file that lies directly in the folder that was asked for names both.
`pattern="{person}/{stimulus}.csv"` reads other layouts: its fields are `person`, `stimulus`,
`session` and `task`, and `{}` stands for any text that does not matter. A field that stands twice
is one text, or texts that are joined: `{person}/{person}.csv` reads `site1/p01.csv` as `site1_p01`,
sessions with a point. `{session:1}` is one character long, and such fields are always joined.

Person and stimulus in paths: which parts of a path may name the participant, and how many people
each reading gives.

A path is read without a question only where one of its parts alone looks like a participant in all
files (`p01`, `sub-03`, `被试01`) and no other part can be one: beside `anna` or `101`, `S01`
may be a scene, and beside folders of sites `sub-01` may be two people. Otherwise the part that is
most like a participant is taken, or a folder is the person and a file the stimulus, as documented,
and the other ways to read the paths are shown with their counts.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from gazeveil import checks
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.recording import FILE, GUESSED, KEY_NAMES, PATH, SAID, Doubt, Fact, Recording
from gazeveil.io.source import stem

#: Options every vendor reader takes.
OPTIONS = frozenset({"person", "stimulus", "session", "task", "pattern"})

#: Facts of names: from a path by the common rule, from the file, and by a format's own rule.
BY_PATH = Fact(PATH, GUESSED)
IN_FILE = Fact("its content", FILE)
_BY_FORMAT = Fact(PATH, GUESSED, "rule of the format")
_FIELD = re.compile(r"\{(person|stimulus|session|task|)(?::(\d))?\}")


class PatternError(FormatError):
    """A path that does not fit the pattern."""


@dataclass(frozen=True)
class Names:
    """Person, stimulus, session and task of one recording, and where each comes from."""

    person: str
    stimulus: str
    session: str = "1"
    task: str = ""
    #: No part of who it is: names are keys where recordings are gathered.
    facts: Mapping[str, Fact] = field(default_factory=dict, compare=False)

    def handle(self, load: Callable[[], Recording], path: Path) -> Handle:
        """The handle of a recording that lies in `path`."""
        return Handle(
            self.person, self.stimulus, load, self.session, self.task, str(path), facts=self.facts
        )


@dataclass(frozen=True)
class NamingOptions:
    """What the user said about the names; None means "find out".

    Parameters
    ----------
    person, stimulus, session, task : str, optional
        Texts that go before everything the file or its path says.
    pattern : str, optional
        How the path says the rest, such as `"{person}/{stimulus}.csv"`.
    guessed : bool
        Whether the pattern was not said but found in the paths themselves.
    """

    person: str | None = None
    stimulus: str | None = None
    session: str | None = None
    task: str | None = None
    pattern: str | None = None
    guessed: bool = False

    def __post_init__(self) -> None:
        for name in ("person", "stimulus", "session", "task", "pattern"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                checks.refuse("read", name, "text", value)
        if self.pattern is not None and not _FIELD.search(self.pattern):
            checks.refuse(
                "read",
                "pattern",
                "a text with a field such as {person} or {stimulus}",
                self.pattern,
            )

    def names(
        self,
        path: Path,
        root: Path,
        place: Mapping[str, str] | None = None,
        /,
        **file_says: str | None,
    ) -> Names:
        """Names of a recording in `path`.

        Parameters
        ----------
        path, root : Path
            The file (or the folder that is one recording) and the folder that was asked for.
        place : mapping of str to str, optional
            What the path says by the format's own rule, where that is not the common one; a pattern
            goes before it.
        **file_says : str or None
            `person`, `stimulus`, `session`, `task` as the file's own content has them; empty means
            it does not say.

        Raises
        ------
        PatternError
            Where the path does not fit the pattern.
        """
        folder = path.parent.name if path.parent != root else ""
        from_path = (
            self._from_pattern(path, root)
            if self.pattern is not None
            else (place or {"person": folder or stem(path), "stimulus": stem(path)})
        )
        by_path = BY_PATH if place is None else _BY_FORMAT
        if self.pattern is not None:
            by_path = Fact(self.pattern, GUESSED if self.guessed else SAID, PATH)
        found, facts = {"person": stem(path), "stimulus": stem(path), "session": "1"}, {}
        for name in KEY_NAMES:
            for value, fact in (
                (from_path.get(name), by_path),
                (file_says.get(name), IN_FILE),
                (getattr(self, name), Fact("an option", SAID)),
            ):
                if value:
                    found[name], facts[name] = value, fact
        for name in ("person", "stimulus"):
            facts.setdefault(name, BY_PATH)
        return Names(**found, facts=facts)

    def _from_pattern(self, path: Path, root: Path) -> dict[str, str]:
        assert self.pattern is not None
        pattern = self.pattern[:-3] if self.pattern.lower().endswith(".gz") else self.pattern
        place = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
        place = place[:-3] if place.lower().endswith(".gz") else place
        for joined in (False, True):
            expression = _expression(pattern, joined)
            # A pattern may name more folders than lie below the root that was asked for.
            for text in (place, path.resolve().as_posix().removesuffix(".gz")):
                match = re.search(f"(?:^|/){expression}$", text)
                if match is not None:
                    words: dict[str, list[str]] = {}
                    for name, word in match.groupdict().items():
                        words.setdefault(name.rstrip("_"), []).append(word)
                    found = {n: ("." if n == "session" else "_").join(w) for n, w in words.items()}
                    # A task that the path names is what was looked at, where nothing else is.
                    return {"stimulus": found["task"], **found} if "task" in found else found
        raise PatternError(
            path,
            f"its path does not fit the pattern '{self.pattern}'",
            "Change the pattern, or leave it out and give person= and stimulus=.",
        )


def fits(pattern: str, path: Path, root: Path) -> bool:
    """Whether a path fits a pattern."""
    try:
        NamingOptions(pattern=pattern).names(path, root)
    except PatternError:
        return False
    return True


def _expression(pattern: str, joined: bool) -> str:
    """A pattern as a regular expression, in which a field that stands twice is one text, or with
    `joined` several in groups `person`, `person_`, ...
    """
    expression, last, fields = "", 0, list[str]()
    for found in _FIELD.finditer(pattern):
        name = found[1]
        length = f"{{{found[2]}}}" if found[2] else "+?"
        group = f"(?P<{name}{'_' * fields.count(name)}>[^/]{length})" if name else "[^/]*?"
        again = bool(name) and name in fields and not joined and not found[2]
        expression += re.escape(pattern[last : found.start()])
        expression += f"(?P={name})" if again else group
        fields.append(name)
        last = found.end()
    return expression + re.escape(pattern[last:])


def naming_options(**options: object) -> NamingOptions:
    """The naming options among a reader's options; others are left alone."""
    named = {k: v for k, v in options.items() if k in OPTIONS}
    guessed = "pattern" in options.get("guessed", ())  # type: ignore[operator]
    return NamingOptions(**named, guessed=guessed)  # type: ignore[arg-type]


def by_folders(folder: Path, root: Path) -> dict[str, str]:
    """Names of a folder that is one recording: the stimulus, below the person."""
    above = folder.parent.name if folder != root and folder.parent != root else ""
    return {"person": above or folder.name, "stimulus": folder.name}


_PERSON_WORDS = (
    "participant|person|subject|subj|sub|user|observer|obs|part|proband(?:in)?|teilnehmer(?:in)?|"
    "versuchsperson|vpn|vp|tn|ppn|ppt|pp|pt|id|p|s|u|n|被试|参与者|受试者|被験者|피험자"
)
_PERSON = re.compile(rf"(?:{_PERSON_WORDS})[\W_]?\d+", re.I)
# Words for a participant that are long enough to mean nothing else, and short ones with a number
# that scenes and sessions rarely have.
_CLEAR = re.compile(rf"(?!(?:id|part|pt|tn|p|s|u|n)[\W_]?\d)(?:{_PERSON_WORDS})[\W_]?\d+", re.I)
_NUMBERED = re.compile(r"[psu][\W_]?\d{2,}", re.I)
_SESSION = re.compile(
    r"(?:session|sess|ses|sitzung|day|tag|visit|wave|round|run|block|messung)[\W_]?\w+", re.I
)
#: A date as names of files and folders have it.
DATE = re.compile(r"(?:19|20)\d\d[-_.]?\d\d[-_.]?\d\d|\d\d[-.]\d\d[-.](?:19|20)\d\d")
_TRACKERS = (
    "tobii|eyelink|smi|pupil|gazepoint|vive|pico|quest|hololens|varjo|neon|webcam|tracker|camera"
)
_KINDS = (
    "device|glasses|left|right|eye|data|raw|csv|recordings?|gaze|samples?|exports?|session|train|"
    "test|control|patients?|condition|block|trial"
)
_TRACKER = re.compile(rf"(?:{_TRACKERS})(?![a-z]).*", re.I)
_NOT_PEOPLE = re.compile(rf"^(?:{_TRACKER.pattern}|(?:{_KINDS})[\W_]*\d*)$", re.I)
# What was looked at, with its number: no participant.
_THING = re.compile(
    r"(?:image|imagen|img|ima|bild|picture|pic|photo|foto|video|vid|clip|film|movie|trial|"
    r"task|text|page|seite|item|stimulus|stim|scene|szene|condition|cond|bedingung|条件|图片|视频)[\W_]?"
    r"(?:\d+|[a-z])",
    re.I,
)
# Parts of a file name: a date, a participant with its number, or what stands between joints.
_TOKEN = re.compile(rf"{DATE.pattern}|(?:{_PERSON_WORDS})[_\-. ]?\d+(?![^\W_])|[^_\-. ]+", re.I)
_LETTERS_AND_DIGITS = re.compile(r"[^\W\d_]+\d+")
_MOST_SHOWN, _MOST_READINGS = 4, 4
#: Topic of the doubt about copies.
COPY = "copy"
#: Files of one size are compared by content, up to this many bytes in all.
_MOST_COMPARED = 1 << 30


@dataclass(frozen=True)
class PathReading:
    """One way to read paths: a pattern, and the people and stimuli that it gives."""

    pattern: str
    people: tuple[str, ...]
    stimuli: int

    @classmethod
    def of(
        cls, pattern: str, files: Sequence[Path], root: Path, meant: Sequence[str] | None = None
    ) -> PathReading | None:
        """The reading of a pattern; None where it does not tell the files apart, or not the people
        that were meant.
        """
        try:
            names = [NamingOptions(pattern=pattern).names(f, root) for f in files]
        except PatternError:
            return None
        people = [n.person for n in names]
        alike = len({(n.person, n.stimulus, n.session, n.task) for n in names}) < len(files)
        if alike or (meant is not None and people != list(meant)):
            return None
        return cls(pattern, tuple(dict.fromkeys(people)), len({n.stimulus for n in names}))

    @property
    def counts(self) -> str:
        """People and stimuli in words."""
        shown = ", ".join(f"'{p}'" for p in self.people[:_MOST_SHOWN])
        more = ", ..." if len(self.people) > _MOST_SHOWN else ""
        people = "1 person" if len(self.people) == 1 else f"{len(self.people)} people"
        stimuli = "1 stimulus" if self.stimuli == 1 else f"{self.stimuli} stimuli"
        return f"{people}: {shown}{more}; {stimuli}"


@dataclass(frozen=True)
class PathQuestion:
    """What paths say of who looked at what: the readings, of which the first is taken, whether it
    is clear, and the pattern to read with, None where the documented rule is taken.
    """

    readings: tuple[PathReading, ...]
    clear: bool = False
    pattern: str | None = None

    def doubts(self) -> list[Doubt]:
        """The question in one sentence, where there is one."""
        if self.clear or not self.readings:
            return []
        taken, *others = self.readings
        odd = sum(bool(_NOT_PEOPLE.match(p)) for p in taken.people) >= 0.5 * len(taken.people)
        text = (
            f"The people were taken from parts of the paths, {taken.pattern!r} ({taken.counts})."
            if self.pattern is not None
            else f"The people were taken from folders ({taken.counts})."
            if "/" in taken.pattern
            else f"Every file was taken for a person of its own ({taken.counts})."
        )
        if odd:
            text += " These look like trackers or kinds of data, not people."
        ways = " or ".join(f"pattern={r.pattern!r} ({r.counts})" for r in others)
        text += (
            f" The paths may also mean {ways or 'one person, which person= says'}. Say the right"
            " pattern=, as an option or in dataset.toml."
        )
        lines = [f"pattern = {_quoted(r.pattern)}  # {r.counts}" for r in self.readings]
        return [Doubt("person", text, "\n".join(lines))]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclass(frozen=True)
class _Parts:
    """A path cut into folders and parts of the file name, with what joins the latter."""

    folders: tuple[str, ...]
    tokens: tuple[str, ...]
    joints: tuple[str, ...]
    ending: str

    @classmethod
    def of(cls, place: PurePosixPath) -> _Parts:
        name = place.name[:-3] if place.name.lower().endswith(".gz") else place.name
        base = stem(Path(place.name))
        found = list(_TOKEN.finditer(base))
        if len(found) == 1 and len(_LETTERS_AND_DIGITS.findall(base)) > 1:
            found = list(_LETTERS_AND_DIGITS.finditer(base))
        ends = [m.end() for m in found[:-1]]
        joints = tuple(base[a : m.start()] for a, m in zip(ends, found[1:], strict=True))
        tokens = tuple(m[0] for m in found)
        if "".join(t + j for t, j in zip(tokens, (*joints, ""), strict=True)) != base:
            tokens, joints = (base,), ()
        return cls(place.parent.parts, tokens, joints, name[len(base) :])

    @property
    def shape(self) -> tuple[object, ...]:
        return len(self.folders), len(self.tokens), self.joints, self.ending

    @property
    def fields(self) -> tuple[str, ...]:
        return (*self.folders, *self.tokens)


def question_of(files: Sequence[Path], root: Path) -> PathQuestion:
    """What the paths of recordings below `root` say of who looked at what."""
    if not files or not all(f.is_relative_to(root) for f in files):
        return PathQuestion(())
    default = _default(files, root)
    parts = [_Parts.of(PurePosixPath(f.relative_to(root).as_posix())) for f in files]
    if len({p.shape for p in parts}) > 1:
        return PathQuestion((default,) if len(files) > 1 else ())
    columns, depth = list(zip(*(p.fields for p in parts), strict=True)), len(parts[0].folders)
    named = [i for i, c in enumerate(columns) if all(_PERSON.fullmatch(w) for w in c)]
    # A part that is the same in all files distinguishes no participants, however it looks.
    varying = [i for i in named if len(set(columns[i])) > 1 or len(files) == 1]
    distinct = {columns[i]: i for i in reversed(varying)}
    found = [(i, r) for i in distinct.values() if (r := _reading(files, root, parts, {i}))]
    leading: list[PathReading] = []
    others: list[PathReading | None] = []
    if len(found) == 1:
        ((person, reading),) = found
        rivals = list(_rivals(columns, person))
        if not rivals:
            return PathQuestion((reading,), True, reading.pattern)
        leading = [reading] if _leads(columns[person], person, rivals, depth) else []
        others = [reading, _reading(files, root, parts, {person, *rivals})]
    if len(files) == 1:
        return PathQuestion(())
    recurring = [i for i, c in enumerate(columns) if 1 < len(set(c)) < len(c) or i in varying]
    others += [_reading(files, root, parts, {i}) for i in recurring]
    if depth:
        others.append(PathReading.of("{stimulus}/{person}" + parts[0].ending, files, root))
    unlike: dict[frozenset[str], PathReading] = {}
    for other in (*leading, default, *others):
        if other is not None:
            unlike.setdefault(frozenset(other.people), other)
    shown = tuple(unlike.values())[:_MOST_READINGS]
    return PathQuestion(shown, False, shown[0].pattern if leading else None)


def _rivals(columns: Sequence[tuple[str, ...]], person: int) -> Iterator[int]:
    """Parts of paths that may be the person as well as one that looks like it, or without which
    two people are one: what varies otherwise than the person and is no date, session, tracker or
    thing that was looked at. Behind a word that means participants alone (`sub-01`) nothing is one,
    and before it only what varies for one of them.
    """
    people = columns[person]
    sure = all(_CLEAR.fullmatch(w) for w in people)
    for i, column in enumerate(columns):
        pairs, kinds = len(set(zip(people, column, strict=True))), len(set(column))
        differs = pairs > len(set(people)) or (not sure and 1 < kinds < pairs)
        other = all(any(k.fullmatch(w) for k in (DATE, _SESSION, _THING, _TRACKER)) for w in column)
        if differs and not other and not (sure and i > person):
            yield i


def _leads(people: Sequence[str], person: int, rivals: Sequence[int], depth: int) -> bool:
    """Whether a part that looks like a participant is taken in spite of rivals: it means nothing
    else, or it has two digits and is a folder or begins a file name.
    """
    in_front = person <= depth and person < min(rivals)
    return all(_CLEAR.fullmatch(w) for w in people) or (
        in_front and all(_NUMBERED.fullmatch(w) for w in people)
    )


def _default(files: Sequence[Path], root: Path) -> PathReading:
    """The documented rule: the folder is the person, the file the stimulus."""
    rule = "{person}" if all(f.parent == root for f in files) else "{person}/{stimulus}"
    names = [NamingOptions().names(f, root) for f in files]
    people = tuple(dict.fromkeys(n.person for n in names))
    suffixes = {f.name[len(stem(f)) :].removesuffix(".gz") for f in files}
    ending = suffixes.pop() if len(suffixes) == 1 else ".csv"
    return PathReading(rule + ending, people, len({n.stimulus for n in names}))


def _reading(
    files: Sequence[Path], root: Path, parts: Sequence[_Parts], person: set[int]
) -> PathReading | None:
    """The reading in which these parts are the person; None where it tells recordings not apart."""
    meant = ["_".join(dict.fromkeys(p.fields[i] for i in sorted(person))) for p in parts]
    found = (PathReading.of(_pattern(parts, person, d), files, root, meant) for d in (False, True))
    return next((r for r in found if r is not None), None)


def _pattern(parts: Sequence[_Parts], person: set[int], dated: bool) -> str:
    """The pattern in which these parts are the person, sessions are sessions, dates nothing unless
    `dated`, and what else varies is the stimulus or, of folders beside such a file name, the task.
    """
    first = parts[0]
    columns = list(zip(*(p.fields for p in parts), strict=True))
    depth = len(first.folders)
    words: list[str] = []
    free: list[int] = []
    for i, column in enumerate(columns):
        if i in person or (len(set(column)) > 1 and column in [columns[p] for p in person]):
            words.append("{person}")
        elif len(set(column)) == 1 and i < depth:
            words.append("{}")
        elif all(DATE.fullmatch(w) for w in column):
            words.append("{session}" if dated else "{}")
        elif all(_SESSION.fullmatch(w) for w in column) and "{session}" not in words:
            words.append("{session}")
        else:
            words.append("")
            free.append(i)
    in_name = [i for i in free if i >= depth]
    if any(len(set(columns[i])) > 1 for i in in_name):
        for i in [i for i in in_name if len(set(columns[i])) == 1]:
            words[i] = columns[i][0]
    fields = ["{stimulus}"] if in_name else []
    for i in reversed([i for i in free if i < depth]):  # the nearest folder first
        names = [n for n in ("{stimulus}", "{task}", "{session}") if n not in fields]
        names = [n for n in names if n not in words]
        words[i] = names[0] if names else "{}"
        fields.append(words[i])
    # What varies in a file name side by side is one stimulus, joints and all.
    text = ""
    for i in range(depth, len(columns)):
        joint = first.joints[i - depth - 1] if i > depth else ""
        word = words[i] or ("{stimulus}" if "{stimulus}" not in text else "{}")
        if not words[i] and i > depth and not words[i - 1]:
            continue
        # Without a joint before it, letters that all files share part the fields.
        letters = {re.match(r"[^\W\d_]*", w)[0] for w in columns[i]}  # type: ignore[index]
        apart = i > depth and not joint and not words[i] and len(letters) == 1
        text += joint + (letters.pop() if apart else "") + word
    return "/".join((*words[:depth], text + first.ending))


def copies(files: Iterable[Path]) -> list[Doubt]:
    """The doubt about files that hold the same bytes: one recording counted as two people."""
    by_size: dict[int, list[Path]] = {}
    for file in files:
        if file.is_file() and file.stat().st_size:
            by_size.setdefault(file.stat().st_size, []).append(file)
    several = {size: alike for size, alike in by_size.items() if len(alike) > 1}
    if sum(size * len(alike) for size, alike in several.items()) > _MOST_COMPARED:
        return []
    pairs = [pair for alike in several.values() for pair in _same(alike)]
    if not pairs:
        return []
    more = f", and {len(pairs) - 1} more such" if len(pairs) > 1 else ""
    one, other = pairs[0]
    return [
        Doubt(
            COPY,
            f"{one} and {other} hold the same bytes{more}: one is a copy. Remove it, else one"
            " recording counts as two.",
        )
    ]


def _same(files: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    seen: dict[bytes, Path] = {}
    for file in files:
        digest = hashlib.sha256(file.read_bytes()).digest()
        if digest in seen:
            yield seen[digest], file
        seen.setdefault(digest, file)


def spelling_doubts(people: Iterable[str]) -> list[Doubt]:
    """The doubt about people whose names differ in case, blanks, zeros (`1`, `01`, `1.0`) or the
    form of Unicode alone (a Mac and a PC write the same accent in two ways).
    """
    spelled: dict[str, dict[str, None]] = {}
    for person in people:
        # The canonical form first: folding case may undo it.
        plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", person).casefold())
        plain = re.sub(r"(?<![\d.])0+(?=\d)|(?<=\d)\.0+$", "", plain.strip())
        key = "".join(c for c in plain if not c.isspace() and unicodedata.category(c) != "Cf")
        spelled.setdefault(key, {})[person] = None
    alike = [tuple(names) for names in spelled.values() if len(names) > 1]
    if not alike:
        return []
    first = " and ".join(ascii(name[:40]) for name in alike[0][:3])
    more = f", and {len(alike) - 1} more such" if len(alike) > 1 else ""
    sentence = (
        f"The people {first}{more} differ in case, blanks, zeros or accents alone. If they are one"
        " person, what is promised per person is wrong: give them one name."
    )
    return [Doubt("person", sentence)]
