"""Write each tutorial as a notebook too: `python docs/start/notebooks.py`.

The page is the only text. Its prose becomes cells of Markdown, its doctests cells of code with the
outputs that the tests of the manual compare.
"""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGES = ("tutorial-screen.md", "tutorial-csv.md", "tutorial-vr.md")

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def notebook(page: Path) -> dict[str, Any]:
    """A page as a notebook of version 4.5."""
    cells: list[dict[str, Any]] = []
    for number, text in enumerate(_BLOCK.split(page.read_text(encoding="utf-8"))):
        if number % 2 == 0:
            cells.append({"cell_type": "markdown", "source": text.strip()})
        else:
            cells += code_cells(text)
    for number, cell in enumerate(cells, 1):
        cell |= {"id": f"cell-{number}", "metadata": {}}
        if cell["cell_type"] == "code":
            cell["execution_count"] = number
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def code_cells(text: str) -> list[dict[str, Any]]:
    """One cell for the statements up to each output."""
    cells, lines = [], ""
    examples = doctest.DocTestParser().get_examples(text)
    for example in examples:
        lines += example.source
        if example.want or example is examples[-1]:
            output = {"output_type": "stream", "name": "stdout", "text": example.want}
            outputs = [output] if example.want else []
            cells.append({"cell_type": "code", "source": lines.strip(), "outputs": outputs})
            lines = ""
    return cells


def main() -> None:
    """Write the notebooks."""
    for name in PAGES:
        text = json.dumps(notebook(HERE / name), indent=1, ensure_ascii=False)
        (HERE / name).with_suffix(".ipynb").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
