"""The audit log: rows that only grow, their export, and how long they stay."""
