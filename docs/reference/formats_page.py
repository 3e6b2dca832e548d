"""Write docs/reference/formats.md from the readers: `python docs/reference/formats_page.py`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from gazeveil.io import registry

#: Options that stand once, at the head of the page.
USUAL = {"pattern", "person", "stimulus", "session", "task"}

HEAD = """# Formats

`gazeveil.read(path)` and every verb of the command line read these formats, from a file or a
folder, gzip or not. The format is found from the files; `format=` names it. Options:
`gazeveil.read(path, format="csv", unit="px", screen=Screen(...))`, on the command line
`--set unit=px --screen 1280x720px,400x225mm,450mm`. `help()` of the module that a section
names has every detail.

Rules of all readers:

- No row is dropped. A row without gaze is an invalid sample; `recording.counts` has the numbers.
- Columns go by name, never by position.
- A sample whose time repeats or goes back is marked invalid; `metadata["time_faults"]` counts them.
- Values that cannot be degrees are invalid (`metadata["impossible"]`). More than one in twenty is
  an error that asks for the unit.
- Links to other folders are followed once. Files of other kinds, hidden files and broken links are
  listed in `cohort.skipped` with the reason.
- A `dataset.toml` beside the data states columns, units, screen, people and stimuli for every verb
  ([own CSV files](../howto/own_csv.md)). Guesses are printed.
- A text file holds at most 4 GiB, unzipped; CSV files have no such limit. A gzip archive above
  256 MiB and 200 times its own size is refused.
- Errors name the file, the line and the remedy.
- Where the size and distance of the screen are unknown, a typical screen is assumed, and
  `metadata["assumed_geometry"]` says so.

Most readers take the options `pattern`, `person`, `stimulus`, `session` and `task`, which name what
the files do not; each section lists further ones. Public datasets have [a page of their
own](datasets.md). `python docs/reference/formats_page.py` writes
this page from the readers' own words.

"""


def names() -> list[str]:
    """Names of the formats that are no public dataset."""
    datasets = {entry.format for entry in registry.describe()}
    return [name for name in registry.names() if name not in datasets]


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for name in names():
        form = registry.get(name)
        options = ", ".join(f"`{o}`" for o in sorted(set(form.options) - USUAL))
        if name in registry.KNOWN:
            parts.append(_described(name))
            continue
        place = f"gazeveil.io.{registry.MODULES[name].partition(':')[0]}"
        own = _section(import_module(place).__doc__ or "", name)
        # Of several formats in one module, one without a section of its own has its title.
        shares = not own and ":" in registry.MODULES[name]
        words = (
            f"{form.title}." if shares else _first_paragraphs(own or import_module(place).__doc__)
        )
        further = f"Options: {options}. " if options else ""
        parts.append(f"## `{name}`\n\n{words}\n\n{further}Module: `{place}`.\n")
    return "\n".join(parts)


def _section(doc: str, name: str) -> str:
    """Return what a docstring of several formats says of one."""
    return doc.partition(f"\n{name}\n{'-' * len(name)}\n")[2]


def _first_paragraphs(doc: str, most: int = 45) -> str:
    """Return the first paragraphs of a docstring, while they have at most so many words."""
    kept: list[str] = []
    for paragraph in doc.strip().split("\n\n"):
        n_words = sum(len(p.split()) for p in kept) + len(paragraph.split())
        plain = not (paragraph.startswith(" ") or paragraph.endswith(":") or "\n---" in paragraph)
        if kept and (n_words > most or not plain):
            break
        kept.append(paragraph)
    return "\n\n".join(kept)


def _described(name: str) -> str:
    """Return the section of a table of known layout."""
    layout = f"{registry.get(name).title}. Layout: `gazeveil/io/known/{name}.toml`."
    return f"## `{name}`\n\n{layout} Options: as of `csv`.\n"


if __name__ == "__main__":
    target = Path(__file__).with_name("formats.md")
    target.write_text(page(), encoding="utf-8")
    print(f"wrote {target}")
