"""Style of the report: the inks of the pictures as variables, light and dark.

Pictures are drawn once in the light colours; in the page each colour stands as a CSS variable, so
that they follow the reader's light or dark mode.
"""

from __future__ import annotations

from pathlib import Path

from gazeveil.plot.inks import INKS


def _variables(side: int) -> str:
    return "".join(f"--{name}:{pair[side]};" for name, pair in INKS.items())


#: Paper is white on paper, whatever the screen is.
_COLOURS = (
    f":root{{color-scheme:light dark;{_variables(0)}}}\n"
    f"@media (prefers-color-scheme:dark){{:root{{{_variables(1)}}}}}\n"
    f"@media print{{:root{{{_variables(0)}}}}}\n"
)

#: The style sheet of every page.
STYLE = _COLOURS + Path(__file__).with_name("style.css").read_text(encoding="utf-8")
