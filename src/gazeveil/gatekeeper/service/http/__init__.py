"""HTTP: routes, request and response schemas, middleware, TLS."""
