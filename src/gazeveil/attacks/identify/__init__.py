"""Attackers that name people."""
