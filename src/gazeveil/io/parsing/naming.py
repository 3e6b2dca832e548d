"""Person, stimulus, session and task of a recording, from options, its file or its place: the rule
all vendor readers share.

Where the file itself does not say, the person is the folder the file lies in and the stimulus the
file name without its suffix; a file that lies directly in the folder that was asked for names both.
`pattern="{person}/{stimulus}.csv"` reads other layouts: its fields are `person`, `stimulus`,
`session` and `task`, and `{}` stands for any text that does not matter. A field that stands twice
is one text, or texts that are joined: `{person}/{person}.csv` reads `site1/p01.csv` as `site1_p01`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gazeveil import checks
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.facts import FILE, GUESSED, PATH, SAID, Fact
from gazeveil.gaze.recording import KEY_NAMES, Recording
from gazeveil.io.source import stem

#: Options every vendor reader takes.
OPTIONS = frozenset({"person", "stimulus", "session", "task", "pattern"})

#: Facts of names: from a path by the common rule, from the file, and by a format's own rule.
BY_PATH = Fact(PATH, GUESSED)
IN_FILE = Fact("its content", FILE)
_BY_FORMAT = Fact(PATH, GUESSED, "rule of the format")
_FIELD = re.compile(r"\{(person|stimulus|session|task|)\}")


class PatternError(FormatError):
    """A path that does not fit the pattern."""


@dataclass(frozen=True)
class Names:
    """Person, stimulus, session and task of one recording, and where each comes from."""

    person: str
    stimulus: str
    session: str = "1"
    task: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)

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
        from_path = (
            self._from_pattern(path, root)
            if self.pattern is not None
            else (place or _from_place(path, root))
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
                    found: dict[str, str] = {}
                    for name, word in match.groupdict().items():
                        field_name = name.rstrip("_")
                        found[field_name] = "_".join(w for w in (found.get(field_name), word) if w)
                    return found
        raise PatternError(
            path,
            f"its path does not fit the pattern '{self.pattern}'",
            "Change the pattern, or leave it out and give person= and stimulus=.",
        )


def _expression(pattern: str, joined: bool) -> str:
    """A pattern as a regular expression, in which a field that stands twice is one text, or with
    `joined` several in groups `person`, `person_`, ...
    """
    expression, last, fields = "", 0, list[str]()
    for found in _FIELD.finditer(pattern):
        name = found[1]
        group = f"(?P<{name}{'_' * fields.count(name)}>[^/]+?)" if name else "[^/]*?"
        again = bool(name) and name in fields and not joined
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


def _from_place(path: Path, root: Path) -> dict[str, str]:
    folder = path.parent.name if path.parent != root else ""
    return {"person": folder or stem(path), "stimulus": stem(path)}
