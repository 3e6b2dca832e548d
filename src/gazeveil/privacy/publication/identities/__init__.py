"""Who is who, what they are called in a release, and what it says about them."""
