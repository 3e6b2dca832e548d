"""The report of a study: one HTML file that works offline, the same pictures as PNG beside it, and
its headline in plain words.
"""

from gazeveil.evaluation.report.page import headline, write_report

__all__ = ["headline", "write_report"]
