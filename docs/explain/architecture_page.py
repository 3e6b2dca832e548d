"""Write the floors, the walk and the largest parts of `architecture.md`, and the picture of the
floors: `python docs/explain/architecture_page.py`.

Floors are those of the import contracts; what one holds is the first sentence of its docstring. The
walk is profiled: `gazeveil protect` reads, protects and writes one recording, and every file whose
functions were called stands on the page. A number of statements is renewed where it is wrong by
more than a twentieth. A test compares page and picture with this.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).parents[2]
PAGE = Path(__file__).with_name("architecture.md")
PICTURE = ROOT / "docs" / "figures" / "architecture.svg"
#: Marks around what is written here.
MARKS = {part: (f"<!-- {part}: begin -->\n", f"<!-- {part}: end -->") for part in ("walk", "parts")}

#: The twenty largest parts, and why each is kept.
LARGEST = {
    "privacy/synthesis": "seven mechanisms that draw gaze, three of papers in two readings",
    "gatekeeper/service": "the service: guards against hostile requests, both interfaces, settings",
    "privacy/stream": "eight mechanisms for live gaze, their losses and graded noise for apps",
    "utility": "thirteen tasks of analysts; a front needs most of them",
    "cli": "22 verbs, with what each says when something is wrong",
    "io/vendors": "the trackers that labs own, each as its program writes files",
    "privacy/publication": "what is published: ledger, names, clock, certificate and page",
    "privacy/tables": "nine mechanisms on features, seven of papers in two readings",
    "evaluation": "studies that go on after a kill and use every release once",
    "gatekeeper/core": "one event log for all apps: quantised gaze, areas, what each may ask",
    "io": "reading a folder or file, other data frames, Parquet and areas of interest",
    "io/plain": "any CSV, with a question where its columns can be read in two ways",
    "papers": "the five papers' experiments and published figures, for `reproduce`",
    "privacy/noise": "exact samplers on integers: the promise rests on them",
    "attacks/vectors": "what the strong battery knows people by; its figures rest on each",
    "features": "event and window features of the papers, with public bounds",
    "release": "`publish`: plan, recipe, journal and advice",
    "gaze/simulate": "participants for tests, the demo and pages without real gaze",
    "privacy": "the promise's interface, registry, composition, heat maps and conformance kit",
    "attacks": "what attackers share: interface, batteries, evidence and the tests of figures",
}

#: One line of the picture, in pixels, and its width.
LINE, WIDTH = 17, 880

#: Reads, protects and writes a recording, and says which files of the package were called. What is
#: imported is imported before, and what compiles kernels is no part of the walk.
WALK = """
import importlib, json, os, sys, warnings
from pathlib import Path
import gazeveil
from gazeveil.cli.main import main
warnings.simplefilter("ignore")
root, folder, modules = Path(gazeveil.__file__).parent, Path(sys.argv[1]), json.loads(sys.argv[2])
for name in modules:
    importlib.import_module(name)
files = {}
def called(frame, event, _):
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(str(root)) and name.endswith(".py"):
        files[Path(name).relative_to(root).as_posix()] = None
if modules:
    sys.setprofile(called)
os.environ["GAZEVEIL_HOME"] = str(folder / f"home{len(modules)}")
out, screen = folder / f"out{len(modules)}", "1920x1080px,532x299mm,650mm"
sys.argv = ["gazeveil", "protect", str(folder / "anna.csv"), str(out)]
sys.argv += ["--mechanism", "gaussian:sigma_deg=3", "--screen", screen]
try:
    main()
except SystemExit as done:
    assert not done.code, done.code
sys.setprofile(None)
known = [name for name in sys.modules if name.startswith("gazeveil.")]
print(json.dumps([f for f in files if not f.startswith("compile")] if modules else known))
"""


def purpose(module: str) -> str:
    """The first sentence of a module's docstring, up to a bracket."""
    path = ROOT / "src" / Path(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = " ".join((ast.get_docstring(ast.parse(source.read_text("utf-8"))) or "").split())
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", text)
    return re.split(r"(?<=[^.])\.(?: |$)| \(", text)[0].rstrip(".")


def exists(module: str) -> bool:
    """Whether a module of the contract is there: a floor in brackets need not be."""
    path = ROOT / "src" / Path(*module.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def floors() -> list[list[str]]:
    """Modules of each floor, from above, as the first import contract has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = settings["contracts"][0]["layers"]
    found = ([m for m in re.findall(r"[\w.]+", layer) if exists(m)] for layer in layers)
    return [modules for modules in found if modules]


def picture() -> str:
    """The floors as SVG: a box for each module, and what it holds."""
    parts, top = [], 4
    for modules in floors():
        wide = (WIDTH - 8) / len(modules) - 8
        texts = [wrap(purpose(module), int(wide / 7.2)) for module in modules]
        high = LINE * (1 + max(len(lines) for lines in texts)) + 12
        for i, (module, lines) in enumerate(zip(modules, texts, strict=True)):
            left = 8 + i * (wide + 8)
            parts.append(
                f'<rect x="{left:.1f}" y="{top}" width="{wide:.1f}" height="{high}" rx="5"/>'
            )
            name = module.removeprefix("gazeveil.")
            for number, line in enumerate([name, *lines], start=1):
                bold = ' font-weight="bold"' if number == 1 else ""
                place = f'x="{left + 9:.1f}" y="{top + LINE * number}"'
                parts.append(f"<text {place}{bold}>{escape(line)}</text>")
        top += high + 6
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" font-size="12"'
        ' font-family="system-ui, sans-serif"><style>rect{fill:#f4f6f8;stroke:#9aa5b1}'
        "text{fill:#1c2733}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def walk(folder: Path) -> str:
    """The files that one recording passes, in the order of their first call, by folder."""
    rows = [f"{4 * i},{960 + i % 90},{540 + i % 7}" for i in range(500)]
    (folder / "anna.csv").write_text("\n".join(["t_ms,x_px,y_px", *rows]) + "\n", "utf-8")
    listed: list[str] = []
    for _ in range(2):
        command = [sys.executable, "-c", WALK, str(folder), json.dumps(listed)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        listed = json.loads(done.stdout.splitlines()[-1])
    folders: dict[str, list[str]] = {}
    for file in listed:
        place, _, name = file.rpartition("/")
        folders.setdefault(place or "gazeveil", []).append(name.removesuffix(".py"))
    lines = [f"One recording passes {len(listed)} files:", "", "| folder | files |", "|---|---|"]
    lines += [f"| `{place}` | {', '.join(names)} |" for place, names in folders.items()]
    return "\n".join(lines) + "\n"


def statements() -> Counter[str]:
    """Statements without docstrings of each part: the first two folders below the package."""
    found: Counter[str] = Counter()
    root = ROOT / "src" / "gazeveil"
    for path in root.rglob("*.py"):
        part = "/".join(path.relative_to(root).parts[:-1][:2])
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            words = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            found[part] += isinstance(node, ast.stmt) and not words
    return found


def parts(text: str) -> str:
    """The largest parts with their statements; a number of `text` stays where it is near enough."""
    now = statements()
    now.pop("", None)
    rows = ["| part | statements | why it stays |", "|---|---|---|"]
    for part, why in LARGEST.items():
        said = re.search(rf"\| `{part}` \| ([\d,]+) \|", text)
        number = int(said[1].replace(",", "")) if said else 0
        if abs(number - now[part]) > now[part] / 20:
            number = round(now[part], -1)
        rows.append(f"| `{part}` | {number:,} | {why} |")
    least = min(now[part] for part in LARGEST)
    larger = [part for part in now if part not in LARGEST and now[part] > 1.05 * least]
    assert not larger, f"the largest parts lack {larger}"
    return "\n".join(rows) + "\n"


def page(folder: Path) -> str:
    """The whole page, with its walk and parts as they are now; `folder` is for the walk's files."""
    text = PAGE.read_text("utf-8")
    for part, made in (("walk", walk(folder)), ("parts", parts(text))):
        begin, end = MARKS[part]
        before, rest = text.split(begin)
        text = before + begin + "\n" + made + "\n" + end + rest.split(end)[1]
    return text


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        PAGE.write_text(page(Path(folder)), "utf-8")
    PICTURE.write_text(picture(), "utf-8")
