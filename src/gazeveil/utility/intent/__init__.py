"""Intent prediction: whether gaze will move to another area soon, and to which."""
