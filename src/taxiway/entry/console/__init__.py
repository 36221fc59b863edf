"""The status page: one file, no outside parts."""
