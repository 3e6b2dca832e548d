"""What readers share: tables, text, names, and how columns become recordings."""
