"""Games against releases that compare people."""
