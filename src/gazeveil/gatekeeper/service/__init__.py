"""The Gatekeeper as a service: settings, decisions, tokens, sessions."""
