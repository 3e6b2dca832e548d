"""What the Gatekeeper takes of a device: one JSON line per figure.

    python benchmarks/gatekeeper_device.py [--json FILE]

Two fresh environments in a temporary folder: one with what `packaging/device.txt` names and the
package without its dependencies, one with the extra `service`. From them: megabytes installed
(beyond an empty environment), seconds to import the core and to begin, memory at rest and with one
stream of samples. Packages come from pip's index, so it needs a network or a cache.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import gatekeeper_load as load
from lines import Lines

ROOT = Path(__file__).parents[1]

#: Starts and imports that a median is taken of; the first of each is left out, as it compiles.
TURNS = 3

IMPORT = (
    "import time; begin = time.perf_counter(); import gazeveil.gatekeeper;"
    " print(time.perf_counter() - begin)"
)


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if not path.is_symlink()) / 1e6


def installed(folder: Path, *steps: list[str]) -> tuple[str, float]:
    """The interpreter of a fresh environment, and the megabytes that pip put into it."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python, empty = str(folder / "bin" / "python"), megabytes(folder)
    for step in steps:
        pip = [python, "-m", "pip", "install", "--quiet", "--no-compile"]
        subprocess.run([*pip, "--disable-pip-version-check", *step], check=True, cwd=ROOT)
    return python, megabytes(folder) - empty


async def memory(keeper: load.Gatekeeper) -> tuple[float, float]:
    """Mebibytes at rest, and while one stream is open for five seconds."""
    idle = load.memory_mib(keeper.process)
    await load.stream_latency(keeper, 5.0, load.RATE_HZ, [10**9], streams=1)
    return idle, load.memory_mib(keeper.process)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", type=Path, help="write the lines here")
    lines = Lines(parser.parse_args().json)
    with tempfile.TemporaryDirectory(prefix="gazeveil-device-") as name:
        folder = Path(name)
        device = [["-r", "packaging/device.txt"], ["--no-deps", "."]]
        python, device_mb = installed(folder / "device", *device)
        _, service_mb = installed(folder / "service", [".[service]"])
        environment = {"PYTHONPATH": "", "NUMBA_CACHE_DIR": str(folder / "kernels")}
        timed = [python, "-c", IMPORT]
        imports_s = [
            float(subprocess.check_output(timed, env={**os.environ, **environment}))
            for _ in range(1 + TURNS)
        ]
        starts_s, memories = list[tuple[float, float]](), list[tuple[float, float]]()
        for _ in range(1 + TURNS):
            keeper = load.Gatekeeper(load.free_port(), load.RATE_HZ, python, **environment)
            try:
                memories.append(asyncio.run(memory(keeper)))
            finally:
                keeper.close()
            starts_s.append((keeper.page_s, keeper.ready_s))
    idle_mib, open_mib = (statistics.median(column) for column in zip(*memories[1:], strict=True))
    page_s, ready_s = (statistics.median(column) for column in zip(*starts_s[1:], strict=True))
    for figure, value, unit in (
        ("installed by packaging/device.txt and the package", device_mb, "MB"),
        ("installed by the extra 'service'", service_mb, "MB"),
        ("import of the core", statistics.median(imports_s[1:]), "s"),
        ("start to the first page", page_s, "s"),
        ("start to ready", ready_s, "s"),
        ("first start to ready, with an empty compile cache", starts_s[0][1], "s"),
        ("memory at rest", idle_mib, "MiB"),
        ("memory with one stream", open_mib, "MiB"),
    ):
        lines.keep({"figure": figure, "value": round(value, 2), "unit": unit, "met": None})
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
