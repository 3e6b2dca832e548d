"""Who may call: tokens of apps, trackers and programs, and sessions of the owner's browsers."""
