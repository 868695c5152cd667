"""Entry point of the `daqloom` command and of `python -m daqloom`."""

import signal
import sys


def main() -> None:
    """Run the command line. Ctrl-C prints one sentence, even while modules are still being
    imported. SIGTERM, which a batch system sends to end a job, is handled like Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from daqloom.cli.app import narrow
        from daqloom.cli.describe import ANSWERED, app

        if not (narrow(app, sys.argv[1:]) or ANSWERED.intersection(sys.argv[1:2])):
            from daqloom.cli.main import app  # with all the others

            narrow(app, sys.argv[1:])
        app(prog_name="daqloom")
    except KeyboardInterrupt:
        print("daqloom: interrupted; nothing was saved", file=sys.stderr)
        sys.exit(130)
    except OSError as error:  # from printing help; commands handle their own errors
        from daqloom.cli.console.terminal import unwritable

        unwritable(error)


if __name__ == "__main__":
    main()
