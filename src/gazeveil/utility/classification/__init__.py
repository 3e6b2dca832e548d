"""What can still be recognised: classes of recordings, with classifiers, splits and scores."""
