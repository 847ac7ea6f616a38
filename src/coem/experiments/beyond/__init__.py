"""What the papers could not do and coem can."""
