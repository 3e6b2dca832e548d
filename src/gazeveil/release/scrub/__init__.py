"""Copies of vendors' files without identifiers; gaze stays as it is."""

from gazeveil.release.scrub.run import PAGE, ScrubReport, scrub

__all__ = ["PAGE", "ScrubReport", "scrub"]
