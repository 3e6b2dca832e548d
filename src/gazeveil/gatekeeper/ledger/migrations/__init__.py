"""How the Gatekeeper's database came to its present shape, one step per file in `versions/`
(Alembic).
"""
