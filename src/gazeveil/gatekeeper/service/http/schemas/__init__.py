"""What goes in and out over HTTP, as pydantic models: they make the OpenAPI page and refuse
everything else.

Exact numbers travel as text (`"3/2"`), so that no budget is ever rounded on its way; null means no
limit. Every error has one shape, :class:`~gazeveil.gatekeeper.service.http.schemas.fields.Problem`,
and never quotes what came.
"""
