"""Lossless software switch: it forwards frames between the devices of a server, with a paced ring
for each destination of incast."""
