"""What runs inside the server, under its own Python: these files are copied, not imported, by this package."""
