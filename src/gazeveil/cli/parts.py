"""`gazeveil evaluate` for a study of several parts: a paper's figure over its datasets, with the
published values beside ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from gazeveil.cli.printing import show
from gazeveil.cli.progress import bar
from gazeveil.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gazeveil.evaluation.results import Results


def is_of_parts(path: Path) -> bool:
    """Whether a path is a study file with `[[part]]` tables."""
    if path.suffix.lower() != ".toml":
        return False
    from gazeveil.papers.parts import has_parts

    return has_parts(path)


def run_parts(
    path: Path,
    out: Path,
    quick: bool,
    said: Mapping[str, object],
    counts: Mapping[str, int],
    executor: str | int | None,
) -> Results:
    """Run a study of parts, part by part, and print what it found beside the published figures."""
    from gazeveil.evaluation.published import lines
    from gazeveil.papers.parts import read
    from gazeveil.papers.series import of_part, run, shorter

    if said:
        name = next(iter(said))
        raise ParameterError(
            f"The study {path} says its {name} itself: edit the file, or give recordings instead of"
            " a study.",
            name=name,
            got=said[name],
        )
    plan = shorter(read(path, quick), **counts)
    with bar("Computing cells") as progress:
        results = run(plan, out, executor, progress)
    plain = Console(highlight=False, soft_wrap=True)
    for line in lines(results):
        plain.print(line, markup=False)
    if not plan.paper:
        for part in plan.parts:
            one = of_part(results, part.label)
            if one.frame.height:
                plain.print(part.label, markup=False)
                show(one)
    reasons: dict[str, list[str]] = {}
    for failure in results.failures:
        reasons.setdefault(failure["sentence"], []).append(failure["cell"])
    for sentence, cells in reasons.items():
        more = f" and {len(cells) - 1} more" if len(cells) > 1 else ""
        plain.print(f"Not computed: {cells[0]}{more}: {sentence}", markup=False)
    return results
