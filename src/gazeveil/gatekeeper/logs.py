"""Log lines as JSON, one on each line of standard error, without gaze.

A line holds a time, a level, a short text and fields that were named on purpose. Of an exception it
holds the type and the places in the code, never its text: an error may quote what it was given, and
that may be gaze.
"""

from __future__ import annotations

import json
import logging
import logging.config
import sys
import traceback
from datetime import UTC, datetime

#: Fields that a line may hold besides its text.
FIELDS = (
    "method",
    "route",
    "status",
    "ms",
    "code",
    "app",
    "tracker",
    "address",
    "count",
    "port",
    "version",
    "database",
)

#: What the server writes of requests and messages that are none. Any stranger may send those, so a
#: line for each would fill the disk.
_OF_STRANGERS = (
    "Invalid UTF-8 sequence received from client.",
    "Invalid HTTP request received.",
    "Unsupported upgrade request.",
)

LOG = logging.getLogger(__package__)


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, object] = {
            "t": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            # Lines of other packages may carry anything in their arguments: only their own words
            # are kept.
            "text": record.getMessage() if record.name.startswith("gazeveil") else str(record.msg),
        }
        line.update({name: getattr(record, name) for name in FIELDS if hasattr(record, name)})
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["at"] = [
                f"{f.filename.rpartition('/')[2]}:{f.lineno} {f.name}"
                for f in traceback.extract_tb(record.exc_info[2])
            ][-12:]
        return json.dumps(line, default=str)


def set_up(level: str) -> None:
    """Send the log lines of the service and of its server to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(lambda record: record.msg not in _OF_STRANGERS)
    for name in ("gazeveil", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.propagate = name == "uvicorn.error"
        logger.setLevel(level.upper() if name == "gazeveil" else logging.WARNING)
