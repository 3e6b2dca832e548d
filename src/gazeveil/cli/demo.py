"""`gazeveil demo`: the first commands of a newcomer, one after the other, on simulated people."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer

from gazeveil.cli.arguments import WorkersOption, say
from gazeveil.errors import DataError

HELP = """\
Simulates people, looks at them, protects them by several mechanisms, attacks every release,
measures what is left of it, and writes a report and a page to explore. Each command is printed
before it runs. It takes some two minutes on two cores.

Example: `gazeveil demo --out demo`"""

_FOLDERS = ("headset", "reading")

#: The commands; `{out}` is the folder.
STEPS = (
    "simulate {out}/headset --people 12 --stimuli 4 --seconds {seconds} --rate 120 --seed 2026",
    "inspect {out}/headset --rows 4 --plot {out}/headset.png",
    "simulate {out}/reading --people {people} --stimuli 4 --seconds {seconds} --rate 120"
    " --task reading --seed 2026",
    "inspect {out}/reading --rows 4 --plot {out}/reading.png",
    "audit lpa:epsilon=1 exponential-dp:epsilon=1,reading=published --trials 20000",
    "publish {out}/reading --preset public-events --plan",
    "evaluate {out}/study.toml --out {out}/study --with-raw --workers {workers}",
    "explore {out}/reading --save {out}/explore.html --people 8 --stimuli 4"
    " -m 'gaussian:sigma_deg=1|3|10' -m 'temporal:K=3|10|30'",
)

#: The study: one mechanism of each kind, the strong battery.
STUDY = """\
name = "Demonstration: {people} simulated people read on a screen"
seed = 2026
repetitions = {repetitions}
scenarios = ["raw/private", "private/private"]
mechanisms = [
  "gaussian:sigma_deg=3",
  "temporal:K=3",
  "spatial:L=64",
  "kaleido:epsilon=10,w=60,r_deg=2",
  "k-same-select:k=4,reading=published",
  "k-same-select:k=4",
  "exponential-dp:epsilon=10",
  "k-same-synth:k=4,match=crowd",
  "dpgazesynth-one-report:epsilon=3",
]
attacks = "{attacks}"
utilities = ["document:split=people", "saliency", "events"]

[cohort]
path = "reading"

[preparation]
window_s = {window_s}
step_s = 1.0
"""

#: Who attacks in the study.
ATTACKS = "strong"

_NOTE = (
    "These people are simulated. On 24 real people (GazeCom) the same strong battery recognises"
    " 36 % under Gaussian noise of 10 degrees, 71 % after spatial and 100 % after temporal"
    " downsampling: docs/results/attackers.md."
)


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
    from gazeveil.cli.main import build
    from gazeveil.workers import cores

    _remove_earlier(out)
    out.mkdir(parents=True, exist_ok=True)
    sizes = {"people": people, "repetitions": repetitions, "window_s": min(10.0, seconds / 2)}
    (out / "study.toml").write_text(STUDY.format(**sizes, attacks=ATTACKS), encoding="utf-8")
    values = {"people": people, "seconds": f"{seconds:g}", "workers": workers or cores()}
    for step in STEPS:
        line = step.format(out=shlex.quote(str(out)), **values)
        say(f"\n$ gazeveil {line}")
        words = shlex.split(line)
        verb = typer.main.get_command(build(words[:1]))
        verb.main(words, prog_name="gazeveil", standalone_mode=False)
    report = out / "study" / "report.html"
    say(f"\n{_NOTE}\nReport: {report}    Page to explore: {out / 'explore.html'}")
    say("Next: gazeveil evaluate YOUR_RECORDINGS --out study --mechanism gaussian:sigma_deg=10")
    if show:
        import webbrowser

        webbrowser.open(report.resolve().as_uri())


def _remove_earlier(out: Path) -> None:
    """Remove the recordings of an earlier demo, and nothing else."""
    from gazeveil.io.parquet import INDEX

    for folder in (out / name for name in _FOLDERS):
        if folder.exists() and not (folder / INDEX).is_file():
            raise DataError(
                f"{folder} exists and was not written by the demo. Choose another folder with"
                " --out."
            )
        shutil.rmtree(folder, ignore_errors=True)
