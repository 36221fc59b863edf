"""The long-running processes of a platform, started by its supervisor."""
