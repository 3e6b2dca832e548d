"""Mechanisms on feature tables."""
