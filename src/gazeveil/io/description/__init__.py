"""What a folder of recordings says about itself, what is guessed, and which guesses look wrong."""
