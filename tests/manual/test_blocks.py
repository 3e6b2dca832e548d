"""Every code block of the manual runs, or says why not.

The tutorials as notebooks: made from their pages, and their cells run.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import json
import re
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import gazeveil
from gazeveil.cli import main as cli
from gazeveil.release import publishing
from tests.support.manual import CodeBlock, blocks, pages, words
from tests.support.places import ROOT

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

#: Verbs that end only when somebody stops them.
SERVING = ("serve", "relay")

PAGES = [page for page in pages() if blocks(page)]
ALL = [block for page in PAGES for block in blocks(page)]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("manual") / "recordings"
    gazeveil.simulate(8, 3, 6, 60, task="reading", seed=1).write(folder)
    return folder


@pytest.fixture
def desk(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Path]:
    """An empty folder with `recordings/`, in which a reader's commands run."""
    shutil.copytree(made, tmp_path / "recordings")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GAZEVEIL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "100")
    with warnings.catch_warnings():
        yield tmp_path


def typed(arguments: list[str]) -> tuple[int, str]:
    """What a command prints, and its exit code."""
    said = io.StringIO()
    code = 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            cli.main(arguments)
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    return code, said.getvalue()


def run_python(block: CodeBlock, namespace: dict[str, Any]) -> None:
    if ">>>" not in block.text:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block.text, block.place, "exec", dont_inherit=True), namespace)
        return
    test = doctest.DocTestParser().get_doctest(
        block.text, namespace, block.place, str(block.page), block.line
    )
    said = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test, out=said.write, clear_globs=False)
    namespace.update(test.globs)
    assert runner.failures == 0, said.getvalue()


def drawn(text: str) -> str:
    """A text without the figures of attacks on releases whose noise is another one each time, and
    without how many attackers and releases there were.
    """
    figures = r"\d+( test releases? .*?strongest of) \d+( .*?recognised) \d+ of (\d+) .*?; chance"
    return re.sub(figures, r"\1\2 of \3; chance", text, flags=re.DOTALL)


def run_commands(block: CodeBlock, strong: bool = False) -> None:
    for step in block.steps():
        arguments = words(step.command)
        assert arguments, f"{block.place}: only gazeveil is run here. Got: {step.command}"
        if arguments[0] == "publish" and "--attacks" not in arguments and not strong:
            arguments += ["--attacks", "quick"]
        endless = arguments[0] in SERVING or (
            arguments[0] == "explore" and "--save" not in arguments
        )
        assert not endless, f"{block.place}: this serves until it is stopped. Mark it as not run."
        code, said = typed(arguments)
        assert code == 0, f"{block.place}: {step.command}\n{said}"
        if block.kind == "console":
            expected, got = (drawn(text) for text in (step.expected + "\n", said))
            same = doctest.OutputChecker().check_output(expected, got, FLAGS)
            assert same, f"{block.place}: {step.command}\nexpected:\n{step.expected}\ngot:\n{said}"


def run_page(page: Path, strong: bool = False) -> None:
    """All blocks of a page. To publish, the quick battery attacks unless the strong one is asked
    for, which takes a minute.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.suppress(KeyError):
        del sys.modules["__manual__"]
    for block in blocks(page):
        if block.reason:
            continue
        if block.kind == "python":
            run_python(block, namespace)
        else:
            run_commands(block, strong)


#: The front page has the commands and the people of the first ten minutes; it runs in full below.
FRONT = ROOT / "README.md"


@pytest.mark.parametrize("page", [page for page in PAGES if page != FRONT], ids=named)
def test_the_blocks_of_a_page_run_as_a_reader_runs_them(
    page: Path, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To publish, two test releases are attacked; ten are in the next test and take a minute."""
    in_full = publishing.measure
    monkeypatch.setattr(publishing, "measure", lambda *a: in_full(*a[:4], 2, *a[5:]))
    run_page(page)


@pytest.mark.heavy
def test_the_front_page_publishes_with_the_strong_battery(desk: Path) -> None:
    run_page(FRONT, strong=True)


@pytest.mark.parametrize("block", [b for b in ALL if b.kind != "python"], ids=lambda b: b.place)
def test_every_command_has_a_verb_and_options_that_exist(block: CodeBlock) -> None:
    for step in block.steps():
        said = words(step.command)
        if not said or said[0].startswith("-"):
            continue
        module = said[0].replace("-", "_")
        assert module in cli.VERBS, f"{block.place}: no verb {said[0]}"
        group = typer.main.get_command(cli.build((module,)))
        verb = group.commands[said[0]]  # type: ignore[attr-defined]
        context = verb.context_class(verb, info_name=said[0])
        verb.make_parser(context).parse_args(list(said[1:]))


def test_blocks_that_do_not_run_say_why_in_a_few_words() -> None:
    reasons = {block.place: block.reason for block in ALL if block.reason}
    assert all(len(reason) > 10 for reason in reasons.values()), reasons
    assert len(reasons) < len(ALL) / 3, "most of the manual runs"


def test_a_wrong_output_fails() -> None:
    page = ROOT / "docs" / "start" / "ten-minutes.md"
    with pytest.raises(AssertionError, match="Expected"):
        run_python(CodeBlock(page, 1, "python", ">>> 1 + 1\n3\n", ""), {})
    with pytest.raises(AssertionError, match="expected"):
        run_commands(CodeBlock(page, 1, "console", "$ gazeveil --version\nother\n", ""))


START = ROOT / "docs" / "start"


def run(source: str, namespace: dict[str, Any]) -> str:
    """What a cell prints, and the value of its last line as a notebook shows it."""
    *body, last = ast.parse(source).body
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(ast.Module(body, []), "cell", "exec"), namespace)
        exec(compile(ast.Interactive([last]), "cell", "single"), namespace)
    return shown.getvalue()


@pytest.mark.parametrize("name", ["tutorial-csv", "tutorial-screen", "tutorial-vr"])
def test_a_notebook_is_its_page(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(START))
    import notebooks

    assert f"{name}.md" in notebooks.PAGES
    written = json.loads((START / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert written == notebooks.notebook(START / f"{name}.md"), "python docs/start/notebooks.py"
    page = (START / f"{name}.md").read_text(encoding="utf-8")
    sources = [line for c in written["cells"] if c["cell_type"] == "code"
               for line in c["source"].splitlines()]  # fmt: skip
    assert len(sources) == page.count("\n>>> ") + page.count("\n... ")


def test_the_cells_of_a_notebook_run_in_order_and_give_their_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    held = json.loads((START / "tutorial-csv.ipynb").read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for cell in (c for c in held["cells"] if c["cell_type"] == "code"):
        output = run(cell["source"], namespace)
        assert output == "".join(o["text"] for o in cell["outputs"]), cell["source"]
