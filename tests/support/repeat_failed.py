"""Ask tests that failed again, each alone: `python -m tests.support.repeat_failed`.

`make test` runs some 9,000 tests, hundreds of them with real browsers, databases, processes and
clocks, three at a time on two cores. One that fails there and passes alone says that the test (or
the machine) wavers; one that fails alone says that the program is broken. Both are printed, and
only the second ends the run: at most `MOST` tests may have failed, and each must pass `TIMES` times
in a row, in processes of its own. A defect that a test finds four times out of five would slip
through once in 125 times; a test that wavers stays on the list until somebody mends it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

#: More tests than this that failed are no accident: a machine that stands still for ten seconds
#: stops three at once, and may do so twice.
MOST = 6

#: How often each must pass.
TIMES = 3

CACHE = Path(".pytest_cache/v/cache/lastfailed")


def failed(cache: Path = CACHE) -> list[str]:
    """The tests of the last run that failed; none where the run ended before it could say so."""
    if not cache.is_file():
        return []
    return sorted(json.loads(cache.read_text(encoding="utf-8")))


def passes(test: str) -> bool:
    """Whether one test passes, alone in a process of its own."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    return subprocess.run(command, check=False).returncode == 0


def verdict(tests: Sequence[str], ask: Callable[[str], bool] = passes) -> tuple[bool, str]:
    """Whether the run may count as passed, and a sentence that says why."""
    if not tests:
        return False, "The run ended without naming a test that failed: read what it printed."
    if len(tests) > MOST:
        return False, f"{len(tests)} tests failed: none is asked again, as {MOST} at most are."
    broken = [test for test in tests if not all(ask(test) for _ in range(TIMES))]
    if broken:
        return False, f"Failed among the others and alone: {', '.join(broken)}."
    return True, (
        f"Failed among the others and passed {TIMES} times alone: {', '.join(tests)}. Such a test"
        " wavers: mend it (CONTRIBUTING.md says how)."
    )


def main() -> int:
    """The exit code of `make test` after tests failed."""
    good, why = verdict(failed())
    sys.stdout.write(f"\n{why}\n")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
