"""What the data is: recordings, cohorts, events, geometry, and a simulator of all of these."""
