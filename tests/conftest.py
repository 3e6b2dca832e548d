"""Settings for all tests."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import Phase, settings

from tests.support.expected import expected, marks_of, missed
from tests.support.one_compiler import compile_in_one_process

# A shell starts what runs behind it deaf to Ctrl-C, and processes hand that on: those that tests
# stop with it would go on.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test goes out to the world. To read its list of certificates for every client took a quarter of
# the time of the tests that speak to a service; this folder has none. Processes inherit it.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = os.path.join(os.path.dirname(__file__), "support")

# Networks are compared bit by bit, which sums on a GPU are not.
os.environ["CUDA_VISIBLE_DEVICES"] = ""

# The first example of a test may compile a kernel: time limits belong to whole tests
# (pytest-timeout), not to examples.
settings.register_profile(
    "gazeveil", deadline=None, max_examples=int(os.environ.get("GAZEVEIL_EXAMPLES", "40"))
)
settings.load_profile("gazeveil")

if os.environ.get("GAZEVEIL_PLANT"):
    # One planted bug for the whole run: see tests/planted. Nobody wants the smallest example of a
    # failure that is asked for.
    from tests.planted import PLANTS

    settings.register_profile(
        "planted", deadline=None, phases=(Phase.explicit, Phase.generate), database=None
    )
    settings.load_profile("planted")

    PLANTS[os.environ["GAZEVEIL_PLANT"]].change(pytest.MonkeyPatch())

#: The exit code of a run in which a test was skipped for want of something expected.
EXIT_UNWANTED_SKIPS = 6

#: Skips for want of something that GAZEVEIL_EXPECTS names: (test, what is missing).
UNWANTED_SKIPS: list[tuple[str, str]] = []


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A ledger of releases for each test: a second release of the same people is refused."""
    monkeypatch.setenv("GAZEVEIL_HOME", str(tmp_path_factory.getbasetemp() / uuid4().hex))


@pytest.fixture(autouse=True, scope="session")
def _studies_run_here(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Studies and releases run in the process of the test unless it names a number of workers: to
    start one for each core took longer than most of their work. What fixtures of modules release is
    written into no ledger of the user's.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gazeveil.workers.cores", lambda: 1)
        patch.setenv("GAZEVEIL_HOME", str(tmp_path_factory.getbasetemp() / "home"))
        yield


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports whose pictures are made and neither drawn nor read by a test: files without bytes."""
    from markupsafe import Markup

    from gazeveil.evaluation.report import charts, pictures

    def finish(drawn: object, folder: Path, name: str, alt: str, caption: str) -> charts.Picture:
        (folder / f"{name}.png").touch()
        svg = Markup('<svg role="img" aria-label="{}"></svg>').format(alt)
        return charts.Picture(name, svg, caption)

    for module in (charts, pictures):
        monkeypatch.setattr(module, "finish", finish)
    # To find room for labels, a figure is drawn; curves and maps take as long.
    for at in (
        "plot.tradeoff._name_points",
        *("evaluation.report.pictures." + n for n in ("before_after", "heat_map")),
    ):
        monkeypatch.setattr(f"gazeveil.{at}", lambda *_, **__: None)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes that are no plain text by their parameter.

    A compressed file holds the second it was made in. As part of a test's name it makes two
    processes collect different tests, and the whole run ends there.
    """
    if isinstance(val, bytes) and not (val.isascii() and val.decode("ascii").isprintable()):
        return argname
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for doctests in src alone: every file of tests would be looked through a second time."""
    return [c for c in (yield) if type(c).__name__ != "DoctestModule"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage, and never look through what was collected again: it
    stays, with all that was imported for it, to the end of the process and of every fork.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)  # a twentieth of all the time went to looking
        if "numba" in sys.modules:
            compile_in_one_process()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by what they use: data, browser, postgres, stats."""
    for item in items:
        if isinstance(item, pytest.Function):
            name = item.nodeid.split("::")[1].split("[")[0]
            for mark in marks_of(item.path, name):
                item.add_marker(mark)


def _note(nodeid: str, longrepr: object) -> None:
    reason = str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)
    if (word := missed(reason, expected())) is not None:
        UNWANTED_SKIPS.append((nodeid, word))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember a test that was skipped although what it needs was expected."""
    if report.skipped:
        _note(report.nodeid, report.longrepr)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Remember a file that was skipped although what it needs was expected."""
    if report.skipped:
        _note(report.nodeid, report.longrepr)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run for such a skip, with a code of its own."""
    if UNWANTED_SKIPS and not hasattr(session.config, "workerinput"):
        session.exitstatus = EXIT_UNWANTED_SKIPS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which skips made the run fail."""
    for nodeid, word in UNWANTED_SKIPS:
        terminalreporter.write_line(f"SKIPPED for want of {word}, which is expected: {nodeid}")
