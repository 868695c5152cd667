"""Where the `daqloom` command and `python -m daqloom` begin."""

import signal
import sys


def main() -> None:
    """Run the command line; Ctrl-C is one sentence even while modules are still being read. A batch
    system that ends a job sends SIGTERM: that is no other interruption."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from daqloom.cli.app import narrow
        from daqloom.cli.describe import app

        if not narrow(app, sys.argv[1:]):
            from daqloom.cli.main import app  # with all the others

            narrow(app, sys.argv[1:])
        app(prog_name="daqloom")
    except KeyboardInterrupt:
        print("daqloom: interrupted; nothing was saved", file=sys.stderr)
        sys.exit(130)
    except OSError as error:  # a command's own are handled by it; this is one of its help
        from daqloom.cli.console.terminal import unwritable

        unwritable(error)


if __name__ == "__main__":
    main()
