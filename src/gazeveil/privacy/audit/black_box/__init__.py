"""Games against `release(...)` and the sentence it prints."""
