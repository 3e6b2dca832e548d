"""`gazeveil curate`: counts, a model and synthetic recordings from the messages of devices."""

from __future__ import annotations

from contextlib import ExitStack
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gazeveil.cli.arguments import JsonOption, counted, say, track, write_json
from gazeveil.cli.randomize import ParametersOption, read_parameters
from gazeveil.errors import DataError

if TYPE_CHECKING:
    from gazeveil.privacy.synthesis.dpgazesynth.curator import Curator
    from gazeveil.privacy.synthesis.dpgazesynth.messages import Buffer
    from gazeveil.privacy.synthesis.dpgazesynth.scheme import Model

HELP = """\
Example: `gazeveil curate messages/*.gvr --parameters public.toml --out curated`

Writes `counts.npz` (sums of answers), `model.npz` (what was learned) and `recordings/`, which
can be published: pseudonyms, times from zero, and PRIVACY.md with what is promised. The order of
messages and files does not matter. A message that is malformed, made under other parameters, cut
short, sent twice, or about another kind of space (see `space` in the parameter file; without it the
more common kind is taken) is refused, counted and left out."""


def command(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="MESSAGES...", help="Files of messages, or folders of them."),
    ],
    parameters: ParametersOption,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Folder to write; must not exist or be empty."
        ),
    ],
    seed: Annotated[
        int | None, typer.Option("--seed", help="Draw the same recordings each time.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Curate messages."""
    from gazeveil.gaze.cohort import Cohort
    from gazeveil.io.source import free
    from gazeveil.privacy.randomness.rng import source
    from gazeveil.privacy.release import Release
    from gazeveil.privacy.synthesis.dpgazesynth.curator import Curator, synthetic

    public = read_parameters(parameters)
    chosen = public.mechanism
    free(out)
    curator = Curator(chosen.scheme(), str(chosen), public.space)
    with ExitStack() as stack:
        taken = curator.add(
            *(_mapped(stack, file) for file in track(_files(paths), len(paths), "Reading"))
        )
        for reason, count in sorted(curator.refused.items()):
            say(f"Refused {counted(count, 'message')}: {reason}.")
        if not taken:
            raise DataError(
                "No message could be taken. Check that they are messages of `gazeveil randomize`"
                " made with these parameters."
            )
        model = curator.learn()
    out.mkdir(parents=True, exist_ok=True)
    _write_arrays(out, curator, model)
    key, reports = source(seed, "curate").take(2).tobytes(), curator.in_order()
    drawing = track(reports, len(reports), "Drawing")
    drawn = Cohort([synthetic(curator.scheme, model, r, chosen.still, key) for r in drawing])
    promise = chosen.promise(
        (r.head.person, curator.scheme.plan(r.head.space, r.head.rate_hz), r.head.samples)
        for r in reports
    )
    # The noise is the devices' own, whatever the recordings are drawn with.
    Release(drawn, promise, chosen.provenance(None)).write(out / "recordings", seed=seed)
    say(
        f"{counted(taken, 'message')} about {counted(curator.windows, 'window')} of"
        f" {counted(len(drawn.people), 'person')}; {sum(curator.refused.values())} refused."
    )
    learned = ", ".join(f"{n} {100 * v:.0f} %" for n, v in model.learned.items())
    say(f"Learned from them: {learned}.")
    say(f"Counts, model and recordings written to {out}.")
    say(f"If every device reported with noise of its own: {promise.plain}")
    summary = {
        "messages": taken,
        "refused": dict(sorted(curator.refused.items())),
        "windows": curator.windows,
        "people": len(drawn.people),
        "learned": dict(model.learned),
        "parameters": str(chosen),
        "guarantee": promise.to_dict(),
    }
    write_json(json_file, summary)


def _files(paths: list[Path]) -> list[Path]:
    """The files that are meant, in an order of their own."""
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            raise DataError(
                f"{path} does not exist. Give files that `gazeveil randomize` wrote, or folders of"
                " them."
            )
        files += sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    if not files:
        raise DataError(
            "There are no files in these folders. Give files that `gazeveil randomize` wrote, or"
            " folders of them."
        )
    return list(dict.fromkeys(files))


def _mapped(stack: ExitStack, path: Path) -> Buffer:
    """A file of any size, read where it is looked at; an empty one cannot be mapped."""
    file = stack.enter_context(path.open("rb"))
    return mmap(file.fileno(), 0, access=ACCESS_READ) if path.stat().st_size else b""


def _write_arrays(out: Path, curator: Curator, model: Model) -> None:
    """Sums by question (ones per category, and how many answers), and what was learned."""
    import numpy as np

    sums: dict[str, Any] = {}
    for name, tally in sorted(curator.sums.items()):
        sums[f"{name}/supports"], sums[f"{name}/reports"] = tally.supports, [tally.reports]
    chain = model.transitions
    learned: dict[str, Any] = {
        "transitions": chain.rows,
        "uniform": chain.uniform,
        "counts": model.counts,
        "lengths": model.lengths,
        **{f"density/{s or 'all stimuli'}": d for (_, s), d in model.densities.items()},
    }
    np.savez_compressed(out / "counts.npz", **sums)
    np.savez_compressed(out / "model.npz", **learned)
