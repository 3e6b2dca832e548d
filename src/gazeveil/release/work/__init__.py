"""The work behind a release that is being written: folder, journal, tasks, workers and the run."""
