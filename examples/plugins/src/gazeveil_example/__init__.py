"""Parts of another package, found by Gazeveil through entry points."""
