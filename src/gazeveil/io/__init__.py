"""In and out: one vendor or format per file, found by name or by sniffing."""
