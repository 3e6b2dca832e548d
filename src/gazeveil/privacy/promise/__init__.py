"""A promise as a map: how much privacy is lost for a stated change of the data, and how such maps
are merged, chained and lifted.
"""
