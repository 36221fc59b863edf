"""Where processes live. `supervisord.py` keeps them on one machine.

This room knows how to run a named command for ever and to say how it is; what the commands do is not its business.
"""
