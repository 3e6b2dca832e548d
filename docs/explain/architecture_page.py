"""Write the floors and the walk of `architecture.md`, and the picture of the floors: `python
docs/explain/architecture_page.py`.

Floors are those of the import contracts; what one holds is the first sentence of its docstring. The
walk is profiled: one recording is read, protected and written, and every file whose functions were
called stands on the page. A test compares page and picture with this.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).parents[2]
PAGE = Path(__file__).with_name("architecture.md")
PICTURE = ROOT / "docs" / "figures" / "architecture.svg"
BEGIN, END = "<!-- walk: begin -->\n", "<!-- walk: end -->"

#: One line of the picture, in pixels, and its width.
LINE, WIDTH = 17, 880

#: Reads, protects and writes a recording, and says which files of the package were called. What is
#: imported is imported before, and what compiles kernels is no part of the walk.
WALK = """
import importlib, json, os, sys, warnings
from pathlib import Path
import gazeveil
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
screen = gazeveil.Screen(1920, 1080, 532, 299, 650)
recordings = gazeveil.read(folder / "anna.csv", screen=screen)
release = gazeveil.protect(recordings, "gaussian:sigma_deg=3")
os.environ["GAZEVEIL_HOME"] = str(folder / f"home{len(modules)}")
release.write(folder / f"out{len(modules)}")
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
        listed = json.loads(done.stdout)
    folders: dict[str, list[str]] = {}
    for file in listed:
        place, _, name = file.rpartition("/")
        folders.setdefault(place or "gazeveil", []).append(name.removesuffix(".py"))
    lines = [f"One recording passes {len(listed)} files:", "", "| folder | files |", "|---|---|"]
    lines += [f"| `{place}` | {', '.join(names)} |" for place, names in folders.items()]
    return "\n".join(lines) + "\n"


def page(folder: Path) -> str:
    """The whole page, with its walk as it is now; `folder` is for files of the walk."""
    text = PAGE.read_text("utf-8")
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + walk(folder) + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        PAGE.write_text(page(Path(folder)), "utf-8")
    PICTURE.write_text(picture(), "utf-8")
