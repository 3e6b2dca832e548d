"""Print the tables of settings of `gatekeeper/running.md`, which a test compares with them."""

from __future__ import annotations

from gazeveil.gatekeeper.service.settings import CallerLimits, Settings


def table() -> str:
    """All settings as the manual's table, in Markdown."""
    lines = ["| setting | default | what it does |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = "none" if field.default in (None, ()) else f"`{str(field.default).lower()}`"
        default = "see below" if name == "limits" else default
        if name == "home":
            default = "`$GAZEVEIL_HOME` or `~/.gazeveil`"
        meaning = " ".join((field.description or "").split())
        lines.append(f"| `{name}` | {default} | {meaning} |")
    lines += ["", "| in `limits` | default | what it does |", "|---|---|---|"]
    for name, field in CallerLimits.model_fields.items():
        meaning = " ".join((field.description or "").split())
        lines.append(f"| `{name}` | `{field.default}` | {meaning} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
