"""Areas of interest: public boxes on stimuli."""
