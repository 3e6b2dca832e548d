"""A simulator of people who look at things."""
