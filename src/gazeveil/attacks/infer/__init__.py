"""Attackers that learn something else: attributes, membership, links between records, places."""
