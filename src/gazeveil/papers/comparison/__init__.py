"""What is said of ours beside a published figure: the three verdicts, and why there is none."""
