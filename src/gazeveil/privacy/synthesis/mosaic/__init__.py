"""Pieces of paths stitched from what a crowd looked at, under names that do not last."""
