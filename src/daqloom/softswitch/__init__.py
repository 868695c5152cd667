"""Software switch without losses: it forwards frames between the devices of a server, with a paced
ring for each destination of incast."""
