"""What a conformance kit says: one line for each check, and what is wrong.

A kit is a sequence of checks; a check takes a part and yields a sentence for each thing that is
wrong. Each kind of part has its kit: `privacy.conformance`, `io.conformance`,
`attacks.conformance`, `utility.base` and `relay.conformance`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

Part = TypeVar("Part")


@dataclass(frozen=True)
class CheckResult:
    """One check of a kit, with what is wrong; nothing where it passed."""

    check: str
    problems: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        if self.passed:
            return f"passed  {self.check}"
        return f"FAILED  {self.check}: {'; '.join(self.problems)}"


def run_kit(kit: Sequence[Callable[[Part], Iterator[str]]], part: Part) -> list[CheckResult]:
    """Run every check of a kit; an exception that a check does not expect is a problem too."""
    results = []
    for check in kit:
        problems: list[str] = []
        try:
            problems.extend(check(part))
        except Exception as error:
            problems.append(f"{type(error).__name__}: {error}")
        results.append(CheckResult(check.__name__.strip("_").replace("_", " "), tuple(problems)))
    return results
