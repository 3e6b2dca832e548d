"""Steps of the database, in order; each is frozen once it was released."""
