"""`gazeveil demo`: all steps on the embedded default: simulate, inspect, protect, attack,
measure what is left, write the report, and the page on which a parameter is moved.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from gazeveil.cli import inspect
from gazeveil.cli.arguments import WorkersOption, say
from gazeveil.cli.progress import bar, track
from gazeveil.errors import DataError

if TYPE_CHECKING:
    from gazeveil.evaluation.results import Results
    from gazeveil.gaze.cohort import Cohort

HELP = """\
Several mechanisms protect them; every release is attacked, and what is left of it is measured. The
end is a report and a page to explore. It takes some two minutes on two cores.

Example: `gazeveil demo --out demo`"""

_SEED = 2026
_STIMULI = 4
_RATE_HZ = 120.0

# Windows short enough for recordings of a demonstration.
_WINDOW_S, _STEP_S = 10.0, 1.0

#: One mechanism of each kind that attackers can look at: streams, then tables (of k-same both
#: readings), then synthetic recordings.
_MECHANISMS = (
    "gaussian:sigma_deg=3",
    "temporal:K=3",
    "spatial:L=64",
    "kaleido:epsilon=10,w=60,r_deg=2",
    "k-same-select:k=4,reading=published",
    "k-same-select:k=4",
    "exponential-dp:epsilon=10",
    "k-same-synth:k=4,match=crowd",
    "dpgazesynth-one-report:epsilon=3",
)
_ATTACKS = ("strong",)
_NOTE = (
    "These people are simulated. On 24 real people (GazeCom) the same strong battery recognises"
    " 36 % under Gaussian noise of 10 degrees, 71 % after spatial and 100 % after temporal"
    " downsampling: docs/results/attackers.md."
)
_UTILITIES = ("document:split=people", "saliency", "events")
_SCENARIOS = ("raw/private", "private/private")

#: Mechanisms whose releases are no recordings: shown, not attacked.
_MAP = "heatmap-laplace:epsilon=10,rows=12,columns=20"
_PEOPLE = "demographics:k=4"

#: What the interactive page moves, on how many of the people.
_MOVED = ("gaussian:sigma_deg=1|3|10", "temporal:K=3|10|30")
_EXPLORED = 8

_AUDITS = ("lpa:epsilon=1", "exponential-dp:epsilon=1,reading=published")


def command(
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the recordings, the pictures and the report.")
    ] = Path("demo"),
    people: Annotated[
        int, typer.Option("--people", min=4, help="How many people to simulate.")
    ] = 12,
    seconds: Annotated[
        float, typer.Option("--seconds", min=5, help="Length of each recording.")
    ] = 20.0,
    repetitions: Annotated[
        int,
        typer.Option(
            "--repetitions",
            "-r",
            min=1,
            help="Draws of what attackers learn from, and of the noise.",
        ),
    ] = 2,
    workers: WorkersOption = None,
    show: Annotated[
        bool, typer.Option("--open", help="Open the report in a browser at the end.")
    ] = False,
) -> None:
    """Run the demonstration."""
    from gazeveil.cli.figures import draw_protected
    from gazeveil.gaze.simulate import simulate
    from gazeveil.privacy.audit.run import audit
    from gazeveil.privacy.registry import mechanism

    console = Console(highlight=False, soft_wrap=True)
    headset = _cohort(
        console, out, "headset", simulate(12, 4, seconds, _RATE_HZ, task="free-viewing", seed=_SEED)
    )
    readers = _cohort(
        console,
        out,
        "reading",
        simulate(people, _STIMULI, seconds, _RATE_HZ, task="reading", seed=_SEED),
    )
    console.rule("protected, sample by sample")
    releases = {
        text: mechanism(text).release(headset[0]) for text in (_MECHANISMS[0], _MECHANISMS[3])
    }
    draw_protected(
        headset[0],
        [(text, release.data) for text, release in releases.items()],
        out / "protected.png",
    )
    for release in releases.values():
        say(f"{release.guarantee.plain}\n")
    say(f"Picture: {out / 'protected.png'}")
    console.rule("promises, attacked by audit")
    for text in track(_AUDITS, len(_AUDITS), "Auditing"):
        say(f"{audit(text, trials=20_000)}\n")
    console.rule("releases, attacked and used")
    results = _study(out, people, seconds, repetitions, workers)
    # Simulated people have no names to hide.
    report = _with_maps_and_people(results, readers).report(out, with_raw=True)
    from gazeveil.evaluation.report import headline

    for sentence in (*headline(results), _NOTE):
        say(f"- {sentence}")
    for failure in results.failures:
        say(f"Not computed: {failure['cell']}: {failure['sentence']}")
    console.rule("one parameter moved, in the browser")
    page = _explore(out, readers, seconds)
    console.rule()
    say(f"Report: {report}")
    say(f"Page to explore: {page}    with all mechanisms: gazeveil explore {out / 'reading'}")
    say("Next: gazeveil evaluate YOUR_RECORDINGS --out study --mechanism gaussian:sigma_deg=10")
    if show:
        import webbrowser

        webbrowser.open(report.resolve().as_uri())


def _explore(out: Path, readers: Cohort, seconds: float) -> Path:
    """The interactive page of a few of the people, saved as one file."""
    from gazeveil.explore.board import Board, Limits, sliders, take
    from gazeveil.explore.saved import save

    board = Board(take(readers, Limits(_EXPLORED, _STIMULI, seconds)), sliders(_RATE_HZ, _MOVED))
    try:
        with bar("Releasing and attacking") as progress:
            return save(board, out / "explore.html", progress=progress)
    finally:
        board.close()


def _study(
    out: Path, people: int, seconds: float, repetitions: int, workers: int | None
) -> Results:
    """Every mechanism against every attacker, on the recordings just written; finished cells of an
    earlier demo are kept.
    """
    from gazeveil.evaluation.run import run
    from gazeveil.evaluation.sources import Files
    from gazeveil.evaluation.study import Study
    from gazeveil.features.recording_set import FeaturePipeline

    study = Study(
        Files(str(out / "reading")),
        _MECHANISMS,  # type: ignore[arg-type]
        _ATTACKS,  # type: ignore[arg-type]
        _UTILITIES,  # type: ignore[arg-type]
        _SCENARIOS,
        repetitions=repetitions,
        seed=_SEED,
        name="demo",
        preparation=FeaturePipeline(window_s=min(_WINDOW_S, seconds / 2), step_s=_STEP_S),
    )
    with bar("Attacking and measuring") as progress:
        results = run(study, out / "study", workers, progress)
    results.study["title"] = f"Demonstration: {people} simulated people read on a screen"
    results.study["notes"] = [_NOTE]
    return results


def _with_maps_and_people(results: Results, cohort: Cohort) -> Results:
    """Add two releases without recordings to attack: a heat map, and the table of participants."""
    from gazeveil.privacy.registry import mechanism

    promised = []
    stimulus = str(results.examples.get("title", "")).rpartition(", ")[2] or cohort.stimuli[0]
    maps, table = mechanism(_MAP), mechanism(_PEOPLE)
    drawn, groups = maps.release(cohort), table.release(cohort.people)
    for text, guarantee in ((str(maps), drawn.guarantee), (str(table), groups.guarantee)):
        promised.append(
            {
                "mechanism": text,
                "plain": guarantee.plain,
                "sentence": str(guarantee),
                "status": guarantee.status,
                "definition": guarantee.definition,
                "unit": guarantee.unit,
            }
        )
    examples = dict(results.examples)
    maps_shown = examples.get("maps")
    if isinstance(maps_shown, Mapping) and stimulus in drawn.data:
        examples["maps"] = {**maps_shown, str(maps): drawn.data[stimulus].cells}
    rows = [
        [
            name,
            *(str(cohort.people[name].get(a, "")) for a in ("age", "gender")),
            *(str(groups.data[name].get(a, "")) for a in ("age", "gender")),
        ]
        for name in groups.data
    ]
    people_table = {
        "caption": (
            f"People as they are and as {_PEOPLE} releases them: at least 4 share every released"
            " line."
        ),
        "columns": ["person", "age", "gender", "released age", "released gender"],
        "rows": rows,
    }
    return replace(
        results,
        guarantees=(*results.guarantees, *promised),
        examples=examples,
        study={**results.study, "tables": [people_table]},
    )


def _cohort(console: Console, out: Path, name: str, cohort: Cohort) -> Cohort:
    from gazeveil.cli.figures import draw_overview
    from gazeveil.io.parquet import write
    from gazeveil.io.reading import read

    folder = out / name
    _clear(folder)
    console.rule(f"{name}: simulated people, {cohort[0].task}")
    write(cohort, folder, progress=partial(track, total=len(cohort), what="Simulating"))
    written = read(folder)
    summary = inspect.show(written, rows=4)
    draw_overview(written, summary, out / f"{name}.png")
    say(f"Picture: {out / name}.png    Recordings: {folder}")
    return written


def _clear(folder: Path) -> None:
    """Remove what an earlier demo wrote, and nothing else."""
    from gazeveil.io.parquet import INDEX

    if not folder.exists():
        return
    if not (folder / INDEX).is_file():
        raise DataError(
            f"{folder} exists and was not written by the demo. Choose another folder with --out."
        )
    shutil.rmtree(folder)
