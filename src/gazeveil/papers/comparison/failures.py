"""What a study could not compute, in few words: one line for each reason, with how many cells it
concerns.
"""

from __future__ import annotations

from gazeveil.evaluation.results import Results


def reasons(results: Results) -> dict[str, list[str]]:
    """The cells that could not be computed, by the sentence that says why."""
    found: dict[str, list[str]] = {}
    for failure in results.failures:
        found.setdefault(failure["sentence"], []).append(failure["cell"])
    return found


def reason_lines(results: Results) -> list[str]:
    """One line for each reason: the first cell, how many more, and why.

    Examples
    --------
    >>> from gazeveil.evaluation.results import frame_of, outcomes_of
    >>> failures = [{"cell": c, "sentence": "Cut."} for c in "ab"]
    >>> reason_lines(Results(frame_of([]), outcomes_of(()), study={"failures": failures}))
    ['a and 1 more: Cut.']
    """
    lines = []
    for sentence, cells in reasons(results).items():
        more = f" and {len(cells) - 1:,} more" if len(cells) > 1 else ""
        lines.append(f"{cells[0]}{more}: {sentence}")
    return lines
