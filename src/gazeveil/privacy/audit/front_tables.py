"""Games against releases of tables."""
