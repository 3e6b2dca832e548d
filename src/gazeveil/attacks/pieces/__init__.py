"""Attackers of releases whose names do not last: each name stands for one piece of a recording."""
