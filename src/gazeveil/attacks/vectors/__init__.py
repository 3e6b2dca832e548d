"""What attackers describe recordings by: numbers that stay the same from stimulus to stimulus."""
