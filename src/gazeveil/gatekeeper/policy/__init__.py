"""What the owner allows: grants, presets, mechanism rules, wearers, and the certificate."""
