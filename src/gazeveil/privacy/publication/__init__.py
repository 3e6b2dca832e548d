"""What every release goes through before anybody outside gets it."""
