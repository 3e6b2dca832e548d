"""A report as a parsed page."""

from __future__ import annotations

from html.parser import HTMLParser

from gazeveil.evaluation.report import write_report
from gazeveil.evaluation.results import Results


class Page(HTMLParser):
    """Elements, their attributes and the text of a page."""

    VOID = frozenset({"meta", "br", "img", "link", "input", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())

    def of(self, *tags: str) -> list[dict[str, str | None]]:
        return [a for t, a in self.elements if t in tags]


def write_report_text(results: Results) -> str:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return write_report(results, folder, with_raw=True).read_text(encoding="utf-8")
