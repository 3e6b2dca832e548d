"""Games against releases of stream mechanisms."""
