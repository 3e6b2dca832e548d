"""All benchmarks one after the other, as `make bench` does: a line each, a summary, and exit code 1
where a floor was missed.

    python benchmarks/run.py [--only NAME ...] [--full] [--list] [--limit-s SECONDS]

Each benchmark is a process of its own with a limit of time, so that one that hangs is named and
stopped with all it started, and the others still run. Sizes are such that all of it takes about an
hour on two quiet cores; `--full` takes the sizes of the manual's tables, which are the benchmarks'
own defaults. The figures go to `benchmarks/results/NAME.jsonl` (`results/full/` with `--full`),
what a benchmark prints to `NAME.log` beside it. How long each took is kept there too, and tells the
next run how much is left.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "results"

#: A benchmark is stopped after so many times what it usually takes, and not before `LEAST_LIMIT_S`:
#: on a busy machine all take several times as long, one that hangs takes for ever.
LIMIT_TIMES, LEAST_LIMIT_S = 6.0, 300.0

#: Seconds that a stopped benchmark has to remove its files and servers.
GRACE_S = 10.0


@dataclass(frozen=True)
class Bench:
    """One file of this folder and how it is run.

    Attributes
    ----------
    name : str
        The file without its ending.
    usual_s : float
        Seconds on two quiet cores at the size of `make bench`.
    full_s : float
        Seconds at the size of the manual's tables.
    options : tuple of str
        What makes it as small as `make bench` wants it; none: the manual's size.
    needs_data : bool
        Whether there is nothing to measure without recordings under GAZEVEIL_DATA.
    """

    name: str
    usual_s: float
    full_s: float
    options: tuple[str, ...] = ()
    needs_data: bool = False


#: Seconds are the processor time of one core where nothing waits, measured beside other work, and
#: what the clock said for those that wait (a disk, a stream's rate).
BENCHES = (
    Bench("speed", 75, 75),
    Bench("long_tables", 30, 200, ("--megabytes", "60")),
    # The other tables have no floors. A sixth of GazeCom is too little to judge pursuit by: F1 0.70
    # there, 0.77 on all of it.
    Bench("events_agreement", 150, 600, ("--only", "datasets"), needs_data=True),
    Bench("events_downstream", 100, 300, ("--repetitions", "1"), needs_data=True),
    Bench("noise", 40, 40),
    Bench("tables_fourier", 45, 45),
    Bench("tables_people", 60, 60),
    Bench("streams", 30, 30),
    Bench("kaleido", 15, 15),
    # With half of the samples the gain's upper end is still far below what is allowed.
    Bench("graded", 60, 120, ("--samples", "100000")),
    Bench("attackers", 210, 210),
    # Ten repetitions here too: with two, linkage found twice as many under Gaussian noise, and a
    # difference of 27 points was 2.
    Bench("real_people", 800, 800, needs_data=True),
    Bench("document_order", 150, 450, ("--cohorts", "1")),
    Bench("synthesis", 170, 170),
    Bench("dpgazesynth", 120, 380, ("--people", "1000", "--repetitions", "1")),
    Bench("fidelity", 60, 140, ("--repetitions", "1"), needs_data=True),
    Bench("event_synth", 130, 130),
    Bench("cvae", 65, 65, needs_data=True),
    Bench("clock_render", 10, 10),
    Bench("mosaic", 40, 40),
    Bench("gatekeeper_latency", 30, 30),
    Bench("gatekeeper_ledger", 25, 25),
    Bench("gatekeeper_attack", 110, 110, needs_data=True),
    Bench("gatekeeper_averaging", 110, 110),
    Bench("gatekeeper_select", 20, 20, needs_data=True),
    Bench("gatekeeper_load", 65, 65),
    # Between 1 and 10 million samples the start of the processes hides how the time grows.
    Bench("release_scale", 100, 220, ("--millions", "10", "30")),
)


@dataclass(frozen=True)
class Outcome:
    """What became of one benchmark.

    Attributes
    ----------
    name : str
        Of the benchmark.
    word : str
        `passed`, `measured` (it has no floor), `missed` (a floor), `failed` (an error), `stopped`
        (at its limit) or `not measured` (its recordings are not here).
    seconds : float
        On the clock.
    details : tuple of str
        The figures that missed or were not judged, or the end of what it printed.
    """

    name: str
    word: str
    seconds: float = 0.0
    details: tuple[str, ...] = ()

    @property
    def bad(self) -> bool:
        """Whether the whole run fails because of it."""
        return self.word in ("missed", "failed", "stopped")

    def line(self) -> str:
        """One line for people."""
        return f"{self.name}: {self.word}, {self.seconds:.0f} s"


@dataclass
class Durations:
    """How long each benchmark took when it last came to its end."""

    path: Path
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read what is kept; a file that cannot be read is as good as none."""
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
            self.seconds = {str(name): float(value) for name, value in kept.items()}
        except (OSError, ValueError, AttributeError, TypeError):
            self.seconds = {}

    def keep(self, name: str, seconds: float) -> None:
        """Remember one, on the disk too."""
        self.seconds[name] = round(seconds, 1)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.seconds, indent=1) + "\n", encoding="utf-8")


def expected_s(bench: Bench, full: bool, last: Durations) -> float:
    """Seconds a benchmark will take: as long as the last time, else as usual."""
    return last.seconds.get(bench.name, bench.full_s if full else bench.usual_s)


def limit_s(bench: Bench, full: bool) -> float:
    """Seconds after which a benchmark is stopped."""
    return max(LEAST_LIMIT_S, LIMIT_TIMES * (bench.full_s if full else bench.usual_s))


@contextmanager
def own_group(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process and all it starts, none of which is left behind."""
    # Python keeps what it prints to a file until it has much: the log of a benchmark that hangs
    # would be empty.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=FOLDER.parent,
            env=environment,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            # Servers and workers of a benchmark that was stopped would go on and disturb the next.
            # An interrupt lets it remove what it made; what does not heed that is killed.
            with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGINT)
                    process.wait(GRACE_S)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_one(bench: Bench, full: bool, most_s: float, folder: Path, results: Path) -> Outcome:
    """Run one benchmark to its end or its limit, and judge it by its figures."""
    results.mkdir(parents=True, exist_ok=True)
    figures, log = results / f"{bench.name}.jsonl", results / f"{bench.name}.log"
    # Figures of an earlier run must not stand for those that this one did not come to.
    figures.unlink(missing_ok=True)
    options = () if full else bench.options
    command = [sys.executable, str(folder / f"{bench.name}.py"), "--json", str(figures), *options]
    begin = perf_counter()
    with own_group(command, log) as process:
        try:
            code = process.wait(most_s)
        except subprocess.TimeoutExpired:
            why = (f"did not end in {most_s:.0f} s", *_end(log))
            return Outcome(bench.name, "stopped", perf_counter() - begin, why)
    took_s = perf_counter() - begin
    rows = _rows(figures)
    missed = tuple(_said(row) for row in rows if row.get("met") is False)
    if missed:
        return Outcome(bench.name, "missed", took_s, missed)
    if code != 0 or not rows:
        why = (f"exit code {code}" if code else "wrote no figures", *_end(log))
        return Outcome(bench.name, "failed", took_s, why)
    unjudged = tuple(
        f"not judged: {row.get('figure')}, {row.get('why')}"
        for row in rows
        if row.get("met", True) is None
    )
    word = "passed" if any(row.get("met") is True for row in rows) else "measured"
    return Outcome(bench.name, word, took_s, unjudged)


def _rows(figures: Path) -> list[dict[str, object]]:
    if not figures.exists():
        return []
    return [json.loads(line) for line in figures.read_text(encoding="utf-8").splitlines() if line]


def _said(row: dict[str, object]) -> str:
    """A figure that was missed, with what it should be."""
    name = ", ".join(str(row[key]) for key in ("figure", "data", "word") if key in row)
    value = row.get("value", row.get("f1"))
    wanted = [
        f"{name} {row[name]}"
        for name in ("floor", "limit", "ceiling", "most", "limit_here")
        if row.get(name) is not None
    ]
    return f"{name}: {value} ({', '.join(wanted) or 'see its line'})"


def _end(log: Path, lines: int = 3) -> tuple[str, ...]:
    """The last lines a benchmark printed."""
    text = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return tuple(line[:200] for line in text[-lines:])


def has_data() -> bool:
    """Whether GAZEVEIL_DATA names a folder with something in it."""
    folder = os.environ.get("GAZEVEIL_DATA")
    return bool(folder) and Path(str(folder)).is_dir() and any(Path(str(folder)).iterdir())


def run_all(
    chosen: Sequence[Bench],
    full: bool,
    most_s: float | None,
    folder: Path = FOLDER,
    results: Path = RESULTS,
) -> list[Outcome]:
    """Run benchmarks one after the other, with a line each and the time that is left."""
    results = results / "full" if full else results
    last = Durations(results / "durations.json")
    outcomes: list[Outcome] = []
    for at, bench in enumerate(chosen):
        if bench.needs_data and not has_data():
            outcomes.append(Outcome(bench.name, "not measured"))
            print(f"{bench.name}: not measured, needs recordings under GAZEVEIL_DATA", flush=True)
            continue
        left_s = sum(expected_s(b, full, last) for b in chosen[at:])
        print(
            f"[{at + 1} of {len(chosen)}] {bench.name}, about"
            f" {expected_s(bench, full, last):.0f} s; all that is left: {left_s / 60:.0f} min",
            file=sys.stderr,
            flush=True,
        )
        outcome = run_one(bench, full, most_s or limit_s(bench, full), folder, results)
        if outcome.word in ("passed", "measured", "missed"):
            last.keep(bench.name, outcome.seconds)
        outcomes.append(outcome)
        print("\n".join((outcome.line(), *(f"    {text}" for text in outcome.details))), flush=True)
    return outcomes


def summary(outcomes: Sequence[Outcome], results: Path) -> str:
    """How many of each, and the names of those that did not pass."""
    counts = Counter(o.word for o in outcomes)
    total_s = sum(o.seconds for o in outcomes)
    lines = [
        ", ".join(f"{n} {word}" for word, n in counts.items())
        + f" in {total_s / 60:.0f} min; figures and logs in {results}"
    ]
    for word in ("missed", "failed", "stopped", "not measured"):
        names = [o.name for o in outcomes if o.word == word]
        if names:
            lines.append(f"{word}: {' '.join(names)}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; 1 where a floor was missed, an error came or a limit was reached."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [bench.name for bench in BENCHES]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help="these alone")
    parser.add_argument("--full", action="store_true", help="sizes of the manual's tables")
    parser.add_argument("--list", action="store_true", help="names, sizes and times; runs nothing")
    parser.add_argument("--limit-s", type=float, help="stop each after so many seconds")
    given = parser.parse_args(arguments)
    if given.limit_s is not None and not given.limit_s > 0:
        parser.error(
            f"--limit-s must be a positive number of seconds. Got {given.limit_s} instead."
        )
    chosen = [b for b in BENCHES if given.only is None or b.name in given.only]
    results = RESULTS / "full" if given.full else RESULTS
    last = Durations(results / "durations.json")
    if given.list:
        for b in chosen:
            options = "" if given.full else " ".join(b.options)
            print(f"{b.name:22} {expected_s(b, given.full, last):6.0f} s  {options}".rstrip())
        print(f"{'all':22} {sum(expected_s(b, given.full, last) for b in chosen):6.0f} s")
        return 0
    outcomes = run_all(chosen, given.full, given.limit_s)
    print(summary(outcomes, results))
    return 1 if any(o.bad for o in outcomes) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
