"""`clock-render`: gaze read on a public clock and rendered by one public eye."""
