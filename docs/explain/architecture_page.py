"""Write the walk of `architecture.md` and the picture of its floors, the largest parts and what was
replaced in `weight.md`: `python docs/explain/architecture_page.py`.

Floors are those of the import contracts; what one holds is the first sentence of its docstring. The
walk is profiled: `gazeveil protect` reads, protects and writes one recording, and every file whose
functions were called stands on the page. A number of statements is renewed where it is wrong by
more than a twentieth. A test compares pages and picture with this.
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
WEIGHT = PAGE.with_name("weight.md")
PICTURE = ROOT / "docs" / "figures" / "architecture.svg"
#: Marks around what is written here.
MARKS = {
    part: (f"<!-- {part}: begin -->\n", f"<!-- {part}: end -->")
    for part in ("walk", "parts", "replaced")
}

#: The twenty largest parts, and why each is kept.
LARGEST = {
    "privacy/synthesis": "seven mechanisms that draw gaze, three of papers in two readings",
    "gatekeeper/service": "guards against hostile requests, both interfaces, settings",
    "privacy/stream": "eight mechanisms for live gaze, their losses and graded noise for apps",
    "utility": "thirteen tasks of analysts; a front needs most of them",
    "cli": "22 verbs, with what each says when something is wrong",
    "io/vendors": "the trackers that labs own, each as its program writes files",
    "privacy/publication": "ledger, names, clock, certificate and page",
    "privacy/tables": "nine mechanisms on features, seven of papers in two readings",
    "evaluation": "studies that go on after a kill and use every release once",
    "gatekeeper/core": "one event log for all apps: quantised gaze, areas, what each may ask",
    "io": "folders, other data frames, Parquet, areas of interest",
    "io/plain": "any CSV, with a question where its columns can be read in two ways",
    "papers": "the five papers' experiments and published figures, for `reproduce`",
    "privacy/noise": "exact samplers on integers: the promise rests on them",
    "attacks/vectors": "what the strong battery knows people by",
    "features": "event and window features of the papers, with public bounds",
    "release": "`publish`: plan, recipe, journal and advice",
    "gaze/simulate": "participants for tests and the demo",
    "privacy": "interface, composition, heat maps, conformance kit",
    "attacks": "interface, batteries, evidence and tests of figures",
}

#: What was replaced or kept: part, its files, library, statements before, time, outcome. Without
#: files the number after stands in place of them.
REPLACED: list[tuple[str, tuple[str, ...] | int, str, int, str, str]] = [
    (
        "workers of studies and of releases",
        ("workers.py", "release/run.py"),
        "concurrent.futures, Dask",
        641,
        "0.96",
        "one pool; the journal of a release stays",
    ),
    (
        "scrubbing and inventory of files",
        ("release/scrub", "release/inventory"),
        "none",
        1929,
        "1.9",
        "rules inside each format",
    ),
    (
        "public datasets",
        ("io/datasets", "io/known"),
        "TOML",
        1101,
        "1.09",
        "plain tables are descriptions",
    ),
    ("CSV and other tables", ("io/plain",), "polars", 1491, "0.92", "kept: it was one reader"),
    (
        "account of releases",
        ("privacy/publication/ledger.py", "privacy/publication/gaze_prints.py"),
        "none",
        413,
        "0.92",
        "kept apart: a file of a lab, offline",
    ),
    (
        "account of the Gatekeeper",
        ("gatekeeper/ledger",),
        "sqlite3, psycopg",
        960,
        "",
        "transactions of many apps; SQLAlchemy went",
    ),
    ("report", ("evaluation/report",), "Jinja2", 1274, "0.85", "templates"),
    ("`explore`", ("explore",), "Jinja2", 442, "", "a template; the same bytes"),
    (
        "policy: text and editor",
        ("gatekeeper/policy",),
        "tomllib",
        1280,
        "",
        "one class that checks, reads and writes itself",
    ),
    (
        "tokens, sessions, cookies",
        ("gatekeeper/service/credentials.py",),
        "hmac, secrets",
        527,
        "",
        "one module instead of six",
    ),
    (
        "uvicorn's internals",
        tuple(f"gatekeeper/service/{name}.py" for name in ("peers", "connections", "server")),
        "uvicorn",
        837,
        "",
        "a guard in front; one subclass, as no hook sees a message before the queue",
    ),
    (
        "promise: changes and maps",
        ("privacy/promise",),
        "none",
        525,
        "",
        "kept: a map is a method and its proof; certificates store `Change` by fields; public"
        " numbers are typed",
    ),
    (
        "prototypes of the RBF network",
        59,
        "scikit-learn",
        159,
        "1.6",
        "replaced: 0.9 s for a study of 8 people; the same rates",
    ),
    (
        "Ledoit-Wolf of the kernels",
        ("attacks/kernel_ridge.py: shrunk_covariance",),
        "none",
        14,
        "",
        "kept: scikit-learn takes 3.2 to 13 times as long",
    ),
    (
        "area under a curve",
        ("attacks/curves.py: roc_area",),
        "none",
        5,
        "",
        "kept: scikit-learn takes 30 to 170 times as long",
    ),
    (
        "audit",
        ("privacy/audit",),
        "none",
        841,
        "0.88",
        "kept: a mechanism's own game knows its worst state and exact likelihoods",
    ),
]

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


def counted(tree: ast.AST) -> int:
    """Statements without docstrings."""
    return sum(
        isinstance(node, ast.stmt)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in ast.walk(tree)
    )


def statements() -> Counter[str]:
    """Statements of each part: the first two folders below the package."""
    found: Counter[str] = Counter()
    root = ROOT / "src" / "gazeveil"
    for path in root.rglob("*.py"):
        part = "/".join(path.relative_to(root).parts[:-1][:2])
        found[part] += counted(ast.parse(path.read_text("utf-8")))
    return found


def statements_of(place: str) -> int:
    """Statements of a folder, a file, or `file: function`."""
    name, _, function = place.partition(": ")
    path = ROOT / "src" / "gazeveil" / name
    trees = [
        ast.parse(p.read_text("utf-8")) for p in (path.rglob("*.py") if path.is_dir() else [path])
    ]
    if not function:
        return sum(map(counted, trees))
    return counted(next(n for n in trees[0].body if getattr(n, "name", "") == function))


def near(said: re.Match[str] | None, now: int, digits: int) -> int:
    """The number that a page says where it is near enough, else the one of now."""
    number = int(said[1].replace(",", "")) if said else 0
    return number if abs(number - now) <= now / 20 else round(now, digits)


def parts(text: str) -> str:
    """The largest parts with their statements; a number of `text` stays where it is near enough."""
    now = statements()
    now.pop("", None)
    rows = []
    for part, why in LARGEST.items():
        number = near(re.search(rf"- `{part}` ([\d,]+):", text), now[part], -1)
        rows.append(f"- `{part}` {number:,}: {why}")
    least = min(now[part] for part in LARGEST)
    larger = [part for part in now if part not in LARGEST and now[part] > 1.05 * least]
    assert not larger, f"the largest parts lack {larger}"
    return "\n".join(rows) + "\n"


def replaced(text: str) -> str:
    """What was replaced, with the statements of now; see :func:`parts`."""
    rows = ["| part | library | before | after | time | outcome |", "|---|---|---|---|---|---|"]
    for part, places, library, before, time, outcome in REPLACED:
        now = places if isinstance(places, int) else sum(map(statements_of, places))
        said = re.search(rf"\| {re.escape(part)} \| [^|]* \| [\d,]+ \| ([\d,]+) \|", text)
        after = near(said, now, 0)
        rows.append(f"| {part} | {library} | {before:,} | {after:,} | {time} | {outcome} |")
    return "\n".join(rows) + "\n"


def filled(text: str, part: str, made: str) -> str:
    """A page with one of its parts made anew."""
    begin, end = MARKS[part]
    before, rest = text.split(begin)
    return before + begin + "\n" + made + "\n" + end + rest.split(end)[1]


def page(folder: Path) -> str:
    """The page of the architecture with its walk as it is now; `folder` is for the walk's files."""
    return filled(PAGE.read_text("utf-8"), "walk", walk(folder))


def weight() -> str:
    """The page of the weight with its numbers as they are now."""
    text = WEIGHT.read_text("utf-8")
    return filled(filled(text, "parts", parts(text)), "replaced", replaced(text))


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        PAGE.write_text(page(Path(folder)), "utf-8")
    WEIGHT.write_text(weight(), "utf-8")
    PICTURE.write_text(picture(), "utf-8")
