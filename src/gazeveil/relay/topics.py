"""Which of Pupil's topics a relay may pass on as they are."""

from __future__ import annotations

from gazeveil.errors import ParameterError

#: Beginnings of Pupil's topics that hold gaze, eyes or what is computed from them.
EYES = (
    "gaze",
    "pupil",
    "surface",
    "fixation",
    "blink",
    "frame.eye",
    "notify.calibration",
    "notify.accuracy",
    "eye_movement",
)


def check_forward(topics: tuple[str, ...]) -> tuple[str, ...]:
    """Topics that may pass as they are: none that begin like one that holds gaze, and none so short
    that they take those in.

    Raises
    ------
    ParameterError
        For such a topic.
    """
    for topic in topics:
        for eye in EYES:
            if topic.startswith(eye) or eye.startswith(topic):
                raise ParameterError(
                    f"The topic '{topic}' takes in {eye}, which holds gaze: it is not passed on."
                    " Name a longer topic without gaze, e.g. frame.world.",
                    name="forward",
                    got=topic,
                )
    return topics
