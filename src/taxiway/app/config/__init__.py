"""`taxiway.yaml`: what a person says about one notebook.

The JSON Schema beside this file is its only description: it checks the file, writes the documentation, and is what
editors are given.
"""
