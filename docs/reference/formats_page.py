"""Write docs/reference/formats.md from the readers: `python docs/reference/formats_page.py`."""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from pathlib import Path

from gazeveil.io import registry

HEAD = """# Formats

`gazeveil.read(path)` and every verb of the command line read these formats, from a file or a
folder, gzip or not. The format is found by looking at the files; `format=` names it.
`gazeveil.read(path, format="csv", unit="px", screen=Screen(...))` passes options; on the command
line it is `--set unit=px --screen 1280x720px,400x225mm,450mm`.

Rules all readers share:

- No row is dropped. A row without gaze is an invalid sample; `recording.counts` says how many rows
  were read and which were not samples.
- Columns go by name, never by position.
- A sample whose time repeats or goes back is kept and marked invalid (as few as possible);
  `metadata["time_faults"]` counts them.
- Values that cannot be degrees are invalid, and `metadata["impossible"]` counts them; more than one
  in twenty of them, in the line of sight or in one eye, is an error that asks for the unit.
- A time that does not fit 64 bits of nanoseconds is an error: its unit is wrong.
- In a folder, links to other folders are followed, each folder once. Files that are not recordings
  of the format, hidden files, and links that lead nowhere are listed in `cohort.skipped` with the
  reason.
- A `dataset.toml` beside the data says columns, units, screen, people and stimuli once for every
  verb; columns and units that nobody said are guessed aloud where the values allow one answer, and
  names and units that look wrong are pointed out ([own CSV files](../howto/own_csv.md)).
- A file without any row below its header is left out of a folder and named.
- A text file holds at most 4 GiB, unzipped (CSV files are read in blocks and have no such limit);
  larger ones are split or converted to Parquet. A gzip archive that has given more than 256 MiB and
  is then more than 200 times its own size is refused.
- An error names the file, the line where there is one, and what to do.
- Where a file does not say how large and far the screen was, a typical one is assumed and
  `metadata["assumed_geometry"]` says so.

This page is written by `python docs/reference/formats_page.py` from the readers' own words.

"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for name in registry.names():
        form = registry.get(name)
        options = ", ".join(f"`{o}`" for o in sorted(form.options)) or "none"
        if name in registry.KNOWN:
            parts.append(_described(name))
            continue
        module = import_module(f"gazeveil.io.{registry.MODULES[name].partition(':')[0]}")
        words = (module.__doc__ or "").strip()
        # Literal blocks of the docstrings are code blocks on a page.
        lines = [
            line.replace("::", ":") if line.rstrip().endswith("::") else line
            for line in words.splitlines()
        ]
        parts.append(f"## `{name}`\n\n" + "\n".join(lines) + f"\n\nOptions: {options}.\n")
    return "\n".join(parts)


def _described(name: str) -> str:
    """The section of a table of known layout: the file that describes it."""
    text = (files("gazeveil.io.known") / f"{name}.toml").read_text("utf-8")
    title = f"{registry.get(name).title}, read by this description:"
    return f"## `{name}`\n\n{title}\n\n```toml\n{text}```\n\nOptions: as of `csv`.\n"


if __name__ == "__main__":
    target = Path(__file__).with_name("formats.md")
    target.write_text(page(), encoding="utf-8")
    print(f"wrote {target}")
