"""The doors: command line, control API, daemons, status page. They translate; they decide nothing."""
