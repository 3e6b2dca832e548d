"""What was spent and what was decided: accounts, the database, the audit log."""
