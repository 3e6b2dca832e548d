"""Networks of headsets: `dgaze` predicts gaze, `ehtask` recognises activities."""
