"""Desired traffic in, Envoy's configuration out, and the word of Envoy that it is in force.

`desired.py` holds the value, `render.py` turns it into text (pure), `publish.py` writes the text in a safe order
and waits for the acknowledgement, `envoy.py` talks to the admin socket, `guard.lua` runs inside Envoy and turns
malformed requests away, `tokens.py` issues and checks bearer tokens. Nothing here decides who gets traffic.
"""
