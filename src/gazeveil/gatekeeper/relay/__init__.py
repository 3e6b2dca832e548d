"""Relays: a protocol in, a mechanism applied, the same protocol out."""
