"""The recordings of a part: tables of windows with their annotation, and files that name nobody."""
