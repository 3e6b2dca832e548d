"""The tables of `docs/howto/choose.md`, from the table behind `gazeveil advise`.

python -m benchmarks.advice_page
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gazeveil.release.advice import KINDS, PURPOSES, Advice, AdviceRow, advice_rows, advise
from gazeveil.release.recipe import PRESETS

BEGIN, END = "<!-- begin advice -->", "<!-- end advice -->"
PAGE = Path(__file__).parent.parent / "docs" / "howto" / "choose.md"

#: Enough participants for every row.
_ENOUGH = 1_000_000


def markdown() -> str:
    """Return the tables of all purposes for recordings on a screen; `advise` prints the others."""
    data = next(r.data for r in advice_rows() if r.kind == "screen" and r.found is not None)
    parts = [f"### {KINDS['screen'].capitalize()}: {data}\n"]
    for purpose, words in PURPOSES.items():
        parts += _section(words, advise(purpose, _ENOUGH, "screen"))
    return "\n".join(parts)


def _section(words: str, advice: Advice) -> Iterator[str]:
    ranked = [*advice.usable, *advice.pieces]
    first = (ranked or advice.useless)[0]
    yield f"**{words[0].upper()}{words[1:]}** (`{first.purpose}`): {_metric(ranked or [first])}.\n"
    if ranked:
        yield f"| mechanism | error | {first.reference_words} | re-identified, % |"
        yield "|---|---|---|---|"
        for row in ranked:
            yield f"| {_name(row)} | {row.value:.2g} | {row.reference:.2g} | {_found(row)} |"
        yield ""


def _metric(rows: Sequence[AdviceRow]) -> str:
    """Return the metric, its unit and the error of raw recordings."""
    raw = next((f"; raw recordings {row.raw:.2g}" for row in rows if row.raw), "")
    return rows[0].metric + (f" in {rows[0].unit}" if rows[0].unit else "") + raw


def _name(row: AdviceRow) -> str:
    preset = next((p.name for p in PRESETS.values() if _is_preset(row, p.mechanism, p.purpose)), "")
    few = f"from {row.least_people} participants" if row.least_people > 1 else ""
    notes = "; ".join(filter(None, (f"preset `{preset}`" if preset else "", few)))
    return f"`{row.mechanism}`" + (f" ({notes})" if notes else "")


def _is_preset(row: AdviceRow, mechanism: str, purpose: str) -> bool:
    return (row.mechanism, row.purpose) == (mechanism, purpose)


def _found(row: AdviceRow) -> str:
    if row.found is None:
        return "not attacked" + ("; the promise covers participants" * row.of_people)
    rate = f"{row.found:g}" + ("" if row.low is None else f" ({row.low:g}\N{EN DASH}{row.high:g})")
    rate += "" if row.names_last else " of pieces"
    return rate if row.fully_attacked or not row.tried else f"{rate}; {row.tried}"


def write_page(path: Path = PAGE) -> None:
    """Put the tables between the marks of the page."""
    before, rest = path.read_text("utf-8").split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n\n{markdown()}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    write_page()
    print(PAGE)
