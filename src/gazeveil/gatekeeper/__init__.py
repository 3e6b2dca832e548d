"""The Gatekeeper: gaze for apps that are not trusted (S001, section 4)."""
