"""Graded release: one protected stream, many views."""
