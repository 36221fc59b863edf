"""A notebook as a package: study the run, write the package, prove in a clean process that both give the same."""
