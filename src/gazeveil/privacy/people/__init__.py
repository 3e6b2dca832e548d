"""Mechanisms on what is known about the people."""
