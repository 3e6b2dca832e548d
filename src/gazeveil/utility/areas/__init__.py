"""Areas of interest: what an analyst of them loses, and the boxes they are made of."""
