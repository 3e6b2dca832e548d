"""Attackers with a deep network (the extra `deep`), and what such a network says of who is who."""
