"""Write docs/results/reproduction.md's tables and reproduction.json from a run of all studies.

`gazeveil reproduce --all --out DIR`, then `python docs/results/reproduction.py DIR`. The prose of
the page is written by hand; what stands between its `<!-- NAME -->` and `<!-- end -->` lines comes
from here.

A study that was run again alone (`gazeveil reproduce NAME --out RUN`) is added with `python
docs/results/reproduction.py NAME=RUN ...`: its figures take the place of those of the same number,
a table of its own says what was run, and what is said of other studies stays as it is. `NAME+=RUN`
adds the figures of settings that were cut before, and nothing else, to `reproduction.json`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from gazeveil.papers.catalogue import study_names
from gazeveil.papers.citations import CITATIONS
from gazeveil.papers.figure import published_figures
from gazeveil.papers.published import row_texts

HERE = Path(__file__).parent
KEPT = ("id", "published", "ours", "low", "high", "kind", "verdict", "reason")


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """The studies of a run, by name, as their `study.json` says them."""
    found = {}
    for name in study_names():
        place = folder / name / "study.json"
        if place.is_file():
            found[name] = json.loads(place.read_text(encoding="utf-8"))["study"]
    return found


def answered(study: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows with a figure of ours."""
    return [row for row in study["published"] if row["ours"] is not None]


def overview(studies: dict[str, dict[str, Any]]) -> str:
    """One line for each study."""
    lines = [
        "| study | parts computed | draws | figures with ours beside | cells not computed |",
        "|---|---|---|---|---|",
    ]
    for name, study in studies.items():
        whole = {part["cohort"] for part in study["parts"]}
        missing = [f["cell"] for f in study["failures"] if f["cell"].partition(":")[0] == f["cell"]]
        parts = f"{len(whole)}" + (f", not {'; '.join(missing)}" if missing else "")
        rows = f"{len(answered(study))} of {len(study['published'])}"
        cells = f"{len(study['failures']) - len(missing):,}"
        lines.append(f"| `{name}` | {parts} | {study['repetitions']} | {rows} | {cells} |")
    return "\n".join(lines)


def claims(studies: dict[str, dict[str, Any]]) -> str:
    """What the papers claim of orders, and formulas; study by study."""
    blocks = []
    for name, study in studies.items():
        rows = [r for r in answered(study) if not str(r["id"]).startswith("PF")]
        if not rows:
            continue
        lines = [f"### `{name}`", "", "| claim | published | ours | what it says |"]
        lines.append("|---|---|---|---|")
        for what, published, ours, _, kind, verdict in row_texts(rows):
            said = verdict or kind
            lines.append("| " + " | ".join(_cell(c) for c in (what, published, ours, said)) + " |")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _cell(text: str) -> str:
    return str(text).replace("|", "\\|").replace("<", "&lt;")


def fill(page: str, name: str, text: str) -> str:
    """The page with what stands between two marks replaced."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    return pattern.sub(lambda m: f"{m[1]}{text}\n{m[2]}", page)


def later(page: str, runs: dict[str, dict[str, Any]]) -> str:
    """One line for each study that was run again alone, then its orders; studies that the page has
    already and that are not among the runs keep what it says of them.
    """
    between = re.search(r"<!-- LATER -->\n(.*?)<!-- end -->", page, re.DOTALL)
    table, *blocks = re.split(r"\n(?=### )", between[1] if between else "")
    rows = {m[1]: m[0] for m in re.finditer(r"^\| `(.+?)` \|.*$", table, re.MULTILINE)}
    orders = {re.findall("`(.+?)`", block)[0]: block.strip() for block in blocks}
    for name, study in runs.items():
        answers = f"{len(answered(study))} of {len(study['published'])}"
        parts = "; ".join(dict.fromkeys(part["cohort"] for part in study["parts"]))
        said = (parts, study["repetitions"], answers, f"{len(study['failures']):,}")
        rows[name] = f"| `{name}` | " + " | ".join(str(s) for s in said) + " |"
        orders[name] = claims({name: study})
    lines = [
        "| study | parts run | draws | figures with ours beside | cells not computed |",
        "|---|---|---|---|---|",
        *rows.values(),
    ]
    return "\n".join(lines) + "\n\n" + "\n\n".join(filter(None, orders.values()))


def write(record: dict[str, list[dict[str, Any]]]) -> None:
    """The figures as JSON, a study a line, and on the page how many there are."""
    lines = [f"{json.dumps(n)}: {json.dumps(rows)}" for n, rows in record.items()]
    (HERE / "reproduction.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    ours = {row["id"] for rows in record.values() for row in rows}
    all_figures = [figure for paper in CITATIONS for figure in published_figures(paper)]
    said = f"{sum(f.id in ours for f in all_figures):,} of {len(all_figures):,} published figures"
    page = HERE / "reproduction.md"
    text = fill(page.read_text(encoding="utf-8"), "COUNT", f"Ours stands beside {said}.")
    page.write_text(text, encoding="utf-8")


def kept(study: dict[str, Any]) -> list[dict[str, Any]]:
    """What the record holds of a study."""
    return [{key: row[key] for key in KEPT} for row in answered(study)]


def add(runs: dict[str, dict[str, Any]]) -> None:
    """Add studies that were run again alone."""
    record = json.loads((HERE / "reproduction.json").read_text(encoding="utf-8"))
    for name, study in runs.items():
        newer = {row["id"]: row for row in kept(study)}
        rows = {row["id"]: row for row in record.get(name, [])} | newer
        record[name] = [rows[i] for i in sorted(rows)]
    write(record)
    page = HERE / "reproduction.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(fill(text, "LATER", later(text, runs)), encoding="utf-8")


def add_missing(name: str, study: dict[str, Any]) -> None:
    """Add published figures that the record lacks: orders need all settings, and stay."""
    record = json.loads((HERE / "reproduction.json").read_text(encoding="utf-8"))
    rows = {row["id"]: row for row in kept(study) if str(row["id"]).startswith("PF")}
    rows |= {row["id"]: row for row in record.get(name, [])}
    record[name] = [rows[i] for i in sorted(rows)]
    write(record)


def study_of(run: str) -> dict[str, Any]:
    """What a run of one study found."""
    study: dict[str, Any] = json.loads((Path(run) / "study.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = study["study"]
    return found


def main() -> None:
    """Write both files."""
    given = sys.argv[1:]
    if given and all("=" in word for word in given):
        named = [word.split("=", 1) for word in given]
        again = {name: study_of(run) for name, run in named if not name.endswith("+")}
        if again:
            add(again)
        for name, run in named:
            if name.endswith("+"):
                add_missing(name.removesuffix("+"), study_of(run))
        return
    if len(given) != 1 or not Path(given[0]).is_dir():
        sys.exit("Give the folder that `gazeveil reproduce --all --out DIR` wrote, or NAME=RUN.")
    studies = read(Path(given[0]))
    page = HERE / "reproduction.md"
    text = fill(page.read_text(encoding="utf-8"), "OVERVIEW", overview(studies))
    page.write_text(fill(text, "CLAIMS", claims(studies)), encoding="utf-8")
    write({name: kept(study) for name, study in studies.items()})


if __name__ == "__main__":
    main()
