"""Mechanisms on streams: one sample at a time, a block, or many streams at once."""
