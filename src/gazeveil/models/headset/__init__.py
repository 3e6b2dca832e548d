"""Networks of headsets: gaze prediction (DGaze) and activity recognition (EHTask), from the eyes
and the head.
"""
