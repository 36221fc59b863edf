"""Taxiway takes a model from a notebook to a production service a team dares to run."""

__version__ = "0.1.0"
