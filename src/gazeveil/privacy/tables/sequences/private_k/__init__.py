"""FPA whose number of bins is chosen from the data, for a stated part of the budget."""
