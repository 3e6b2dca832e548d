"""The Gatekeeper's client for apps in Python."""
