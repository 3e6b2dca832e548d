"""Networks of headsets: where gaze will be (DGaze) and what somebody does (EHTask), from the
eyes and the head.
"""
