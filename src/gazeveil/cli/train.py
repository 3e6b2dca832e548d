"""`gazeveil train`: the network of the attacker `ekyt`, of the gaze predictor `dgaze` or of the
recogniser of activities `ehtask`, trained on recordings or on simulated people, and judged on
people it was not trained on.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gazeveil.cli.arguments import (
    FormatOption,
    JsonOption,
    ScreenOption,
    SetOption,
    counted,
    read_cohort,
    write_json,
)
from gazeveil.cli.ekyt_training import WEIGHTS, train_person_network
from gazeveil.cli.headset_training import (
    SIMULATED_TASKS,
    HeadsetOptions,
    simulated_activities,
    train_headset,
)
from gazeveil.cli.progress import track
from gazeveil.errors import ParameterError

if TYPE_CHECKING:
    from gazeveil.gaze.cohort import Cohort

HELP = """\
Writes weights.npz, card.md and card.json. After a kill or Ctrl-C the same command goes on from the
last checkpoint. Needs the extra `deep`.

Example: `gazeveil train recordings/ --out network/ --hold-out 0.25`, then
`gazeveil evaluate ... -a ekyt:weights=network/weights.npz`

Example: `gazeveil train recordings/ --network dgaze --out network/`, then
`gazeveil evaluate ... -u prediction:model=dgaze,weights=network/weights.npz`

Example: `gazeveil train --simulate 24 --network ehtask --out network/`, then
`gazeveil evaluate ... -u activity:classifier=ehtask,weights=network/weights.npz`"""

#: What each network takes where nothing is said: batches, batches between two checkpoints, seconds
#: of a window.
NETWORKS: Mapping[str, tuple[int, int, float]] = {
    "ekyt": (400, 20, 5.0),
    "dgaze": (1500, 100, 10.0),
    "ehtask": (600, 20, 10.0),
}

#: Options that only some networks have.
_ONLY = {
    "--channels": ("ekyt",),
    "--windows": ("ekyt",),
    "--window": ("ekyt", "ehtask"),
    "--horizon": ("dgaze",),
    "--past": ("dgaze",),
    "--head": ("dgaze", "ehtask"),
    "--reading": ("dgaze", "ehtask"),
    "--label": ("ehtask",),
}


# Long: one option of the command line a line.
def command(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")],
    path: Annotated[
        Path | None, typer.Argument(help="A file or a folder of recordings, or --simulate.")
    ] = None,
    people: Annotated[
        int | None, typer.Option("--simulate", min=4, help="Train on this many simulated people.")
    ] = None,
    stimuli: Annotated[int, typer.Option(help="Stimuli of each simulated person.")] = 4,
    seconds: Annotated[float, typer.Option(help="Length of each simulated recording.")] = 20.0,
    sessions: Annotated[int, typer.Option(help="Sessions of each simulated person.")] = 2,
    hold_out: Annotated[
        float, typer.Option("--hold-out", help="Share of the people to judge it on, 0 for nobody.")
    ] = 0.25,
    network: Annotated[str, typer.Option("--network", help="ekyt, dgaze or ehtask.")] = "ekyt",
    channels: Annotated[
        str | None, typer.Option(help="ekyt: gaze (default), head or gaze+head.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            help="Rate of simulated people in Hz; ekyt: highest rate of velocities, the lowest"
            " counts. 125 if not given.",
        ),
    ] = None,
    window: Annotated[
        float | None,
        typer.Option("--window", help="Seconds of one window; ekyt 5, ehtask 10 if not given."),
    ] = None,
    horizon: Annotated[
        float | None, typer.Option(help="dgaze: seconds ahead, 0.1 if not given.")
    ] = None,
    past: Annotated[
        float | None, typer.Option(help="dgaze: seconds of the past, 0.5 if not given.")
    ] = None,
    head: Annotated[
        str | None, typer.Option(help="dgaze, ehtask: recorded (default) or none.")
    ] = None,
    reading: Annotated[
        str | None, typer.Option(help="dgaze, ehtask: corrected (default) or published.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="ehtask: task (default) or stimulus names the activity.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Batches; ekyt 400, dgaze 1500, ehtask 600 if not given.")
    ] = None,
    windows: Annotated[
        int | None,
        typer.Option(help="ekyt: windows of each of 16 people in a batch, 8 if not given."),
    ] = None,
    every: Annotated[
        int | None, typer.Option(help="Steps between two checkpoints; 20, dgaze 100 if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Makes training repeatable.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda.")] = "auto",
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    json_file: JsonOption = None,
) -> None:
    """Train a network."""
    from gazeveil.gaze.cohort import Cohort
    from gazeveil.models.train import best_device

    _refuse(path, people, hold_out, out)
    own: dict[str, object] = {
        "--channels": channels,
        "--windows": windows,
        "--window": window,
        "--horizon": horizon,
        "--past": past,
        "--head": head,
        "--reading": reading,
        "--label": label,
    }
    _refuse_others(network, own, rate is not None and people is None)
    where = best_device(device)
    rate_hz = 125.0 if rate is None else rate
    if people is not None:
        cohort, data = _simulated(network, people, stimuli, seconds, sessions, rate_hz, seed)
    else:
        assert path is not None
        cohort, data = read_cohort(path, format_name, settings, screen), path.name
    in_memory = Cohort(list(track(cohort, len(cohort), "Reading")), cohort.people)
    batches, between, window_s = NETWORKS[network]
    batches = batches if steps is None else steps
    between = between if every is None else every
    window_s = window_s if window is None else window
    if network == "ekyt":
        chosen = channels or "gaze", rate_hz, window_s, 8 if windows is None else windows
        card: Mapping[str, object] = train_person_network(
            in_memory, data, out, hold_out, chosen, (batches, between, seed), where
        )
    else:
        options = HeadsetOptions(
            network,
            out,
            hold_out,
            batches,
            between,
            seed,
            where,
            "recorded" if head is None else head,
            "corrected" if reading is None else reading,
            0.1 if horizon is None else horizon,
            0.5 if past is None else past,
            window_s,
            "task" if label is None else label,
        )
        card = train_headset(options, in_memory, data).to_dict()
    write_json(json_file, card)


def _refuse(path: Path | None, people: int | None, hold_out: float, out: Path) -> None:
    if path is not None and path.name in NETWORKS and not path.exists():
        raise ParameterError(
            f"{path} is no folder of recordings. The network is chosen with --network {path}.",
            name="path",
            got=path,
        )
    if (path is None) == (people is None):
        raise ParameterError(
            "`gazeveil train` needs either recordings or --simulate with a number of people, not"
            " both.",
            name="path",
            got=path,
        )
    if not 0 <= hold_out < 1:
        raise ParameterError(
            f"The '--hold-out' option must be a share from 0 to below 1. Got {hold_out} instead.",
            name="--hold-out",
            got=hold_out,
        )
    if (out / WEIGHTS).exists():
        raise ParameterError(
            f"{out} holds weights already. Give another folder with --out, or delete it.",
            name="--out",
            got=str(out),
        )


def _refuse_others(network: str, given: Mapping[str, object], rate_of_files: bool) -> None:
    """Refuse an unknown network, and options that the network does not have."""
    if network not in NETWORKS:
        raise ParameterError(
            f"The '--network' option must be one of {', '.join(NETWORKS)}. Got '{network}'"
            " instead.",
            name="--network",
            got=network,
        )
    for option, networks in _ONLY.items():
        if given[option] is not None and network not in networks:
            raise ParameterError(
                f"The '{option}' option belongs to {' and '.join(networks)}, and the network"
                f" {network} does not take it. Leave it out.",
                name=option,
                got=given[option],
            )
    if rate_of_files and network != "ekyt":
        raise ParameterError(
            f"The '--rate' option is the rate of simulated people, and {network} takes recordings"
            " at their own rate. Leave it out.",
            name="--rate",
            got=None,
        )


def _simulated(
    network: str,
    people: int,
    stimuli: int,
    seconds: float,
    sessions: int,
    rate_hz: float,
    seed: int,
) -> tuple[Cohort, str]:
    from gazeveil.gaze.simulate import simulate

    size = (people, stimuli, seconds)
    if network == "ehtask":
        cohort = simulated_activities(*size, sessions, rate_hz, seed)
    else:
        cohort = simulate(*size, rate_hz, seed=seed, sessions=sessions)
    words = f"{stimuli:,} {'stimulus' if stimuli == 1 else 'stimuli'}"
    activities = f", {', '.join(SIMULATED_TASKS)}" if network == "ehtask" else ""
    return cohort, (
        f"simulated people (seed {seed}): {words} of {seconds:g} s each, "
        f"{counted(sessions, 'session')}{activities}"
    )
