"""The recordings of a part: tables of annotated windows, and files without participant names."""
