"""Version 0 of the service: the .proto file, and the modules that tools/protos.py makes of it."""
