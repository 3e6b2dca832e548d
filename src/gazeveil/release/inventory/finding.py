"""One finding, and all findings of a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

#: Kind -> (what a release does with it, what `scrub` does with it).
KINDS: dict[str, tuple[str, str]] = {
    "date": ("dropped", "replaced"),
    "clock": ("aligned", "aligned"),
    "serial": ("dropped", "replaced"),
    "name": ("replaced", "replaced"),
    "e-mail": ("dropped", "dropped"),
    "path": ("dropped", "dropped"),
    "free text": ("dropped", "replaced"),
    "rate": ("aligned", "a person should look"),
    "attribute": ("replaced", "dropped"),
    "eye distance": ("dropped", "dropped"),
    "height": ("dropped", "dropped"),
    "screen": ("a person should look", "a person should look"),
    "device model": ("dropped", "a person should look"),
    "file name": ("replaced", "replaced"),
    "file time": ("dropped", "replaced"),
}

#: What may be named in `keep` -> the kind that then goes out as it is.
KEPT_BY = {
    "person": "name",
    "times": "clock",
    "rate": "rate",
    "attributes": "attribute",
    "stimulus": "free text",
    "task": "free text",
    "messages": "free text",
}

_LONGEST = 60


@dataclass(frozen=True)
class Finding:
    """One thing in a file that says who, when, where or with what.

    Parameters
    ----------
    file : str
        Path below the folder that was asked for.
    field : str
        Where in the file: a column, a key of the header, `line 12`, `file name`.
    kind : str
        One of :data:`KINDS`.
    example : str
        The value, or the first of several; cut after 60 characters.
    count : int
        How often it was seen in the lines looked at.
    values : tuple of str
        Distinct values, uncut; the first 1,000 of them.
    kept : bool
        Whether the user has named it to go out as it is.
    """

    file: str
    field: str
    kind: str
    example: str
    count: int = 1
    values: tuple[str, ...] = ()
    kept: bool = False

    @property
    def in_release(self) -> str:
        """What `publish` and `protect` do with it."""
        return "kept by name" if self.kept else KINDS[self.kind][0]

    @property
    def in_scrub(self) -> str:
        """What `scrub` does with it."""
        return KINDS[self.kind][1]

    def to_dict(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "file": self.file,
            "field": self.field,
            "kind": self.kind,
            "example": self.example,
            "count": self.count,
            "in_release": self.in_release,
            "in_scrub": self.in_scrub,
        }


@dataclass(frozen=True)
class Inventory:
    """All findings of a file or folder.

    Parameters
    ----------
    findings : tuple of Finding
        In the order of files and lines.
    files : int
        How many files were looked at.
    lines : int
        How many lines of text were looked at.
    all_text : bool
        Whether every line was; otherwise headers and samples of the bodies were.
    not_opened : tuple of str
        Files whose content could not be looked at.
    """

    findings: tuple[Finding, ...]
    files: int
    lines: int
    all_text: bool
    not_opened: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def of(self, *kinds: str) -> tuple[Finding, ...]:
        """The findings of some kinds."""
        return tuple(f for f in self.findings if f.kind in kinds)

    def keeping(self, keep: Iterable[str]) -> Inventory:
        """The same findings, where those that `keep` names go out as they are.

        Parameters
        ----------
        keep : iterable of str
            `person`, `times`, `rate`, `attributes`, `stimulus`, `task`, `messages`, or the name of
            one field.
        """
        names = set(keep)
        kinds = {KEPT_BY[name] for name in names if name in KEPT_BY}
        return replace(
            self,
            findings=tuple(
                replace(f, kept=f.kind in kinds or f.field in names) for f in self.findings
            ),
        )

    def summary(self) -> tuple[Finding, ...]:
        """One finding per field and kind, with the files counted: `12 files` stands for names."""
        groups: dict[tuple[str, str, bool], list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault((finding.field, finding.kind, finding.kept), []).append(finding)
        order = list(KINDS)
        rows = [
            replace(
                found[0],
                file=found[0].file if len(found) == 1 else f"{len(found)} files",
                count=sum(f.count for f in found),
            )
            for found in groups.values()
        ]
        return tuple(sorted(rows, key=lambda f: order.index(f.kind)))

    def sentence(self) -> str:
        """How much was looked at."""
        how = "all text" if self.all_text else "headers and samples of the bodies"
        return (
            f"{len(self.findings)} findings in {self.files} files ({self.lines:,} lines looked at:"
            f" {how})."
        )

    def to_dict(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "files": self.files,
            "lines": self.lines,
            "all_text": self.all_text,
            "not_opened": list(self.not_opened),
            "findings": [f.to_dict() for f in self.findings],
        }


def shorten(text: str) -> str:
    """A value as an example: one line, at most 60 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."
