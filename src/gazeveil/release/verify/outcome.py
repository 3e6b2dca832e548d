"""What verification found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class VerifyCheck:
    """One question about a release, and the answer: what is wrong, one sentence each, or a note on
    what was seen, or why the question could not be asked.
    """

    name: str
    failures: tuple[str, ...] = ()
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.failures


@dataclass(frozen=True)
class VerifiedRelease:
    """All answers, in the order they were asked."""

    checks: tuple[VerifyCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[str, ...]:
        """All that is wrong."""
        return tuple(f for check in self.checks for f in check.failures)

    def to_dict(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "passed": self.passed,
            "checks": [
                {"name": c.name, "passed": c.passed, "failures": list(c.failures), "note": c.note}
                for c in self.checks
            ],
        }
