"""Where gaze will be: what is known at a moment, floors, a linear model and a network."""
