"""One module for each kind of file that takes more than a list of columns."""
