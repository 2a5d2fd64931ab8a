"""Routes: for each stage, which slices and passes are tried in which order."""
