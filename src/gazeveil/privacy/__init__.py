"""Mechanisms, what they promise, and the account of it. Nothing here knows how it is judged."""
