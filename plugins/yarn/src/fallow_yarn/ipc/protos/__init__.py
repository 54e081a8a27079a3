"""The few Hadoop messages that this plugin exchanges, as minimal proto2 files.

`python tools/protos.py` makes the `_pb2` modules from the `.proto` files. Numbers are those of Hadoop 2.8 to 3.5.
Text that the server sends is declared `bytes`, which is the same on the wire: a stray byte must not break an answer.
"""
