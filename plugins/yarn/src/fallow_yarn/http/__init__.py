"""Reads the web pages of Hadoop's daemons.

`web` is the client, and `loose_json` reads values whose JSON shape differs between releases. Nothing here knows a page.
"""
