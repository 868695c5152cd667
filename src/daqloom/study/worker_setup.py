"""Loaded by every Dask worker as it starts: Ctrl-C is for the command, which then ends its workers.

A terminal sends it to all processes at once; workers would die with tracebacks of their own.
"""

import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)
