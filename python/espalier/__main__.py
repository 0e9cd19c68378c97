"""The command-line tool, which the package carries: ``python -m espalier``, or ``espalier`` where it is installed.

The program takes the place of Python, so that signals, exit codes and standard input are its own.
"""

import os
import signal
import sys
from pathlib import Path

if __name__ == "__main__":
    tool = Path(__file__).parent / "bin" / "espalier"
    if not tool.exists():
        sys.exit(f"espalier: there is no command-line tool at {tool}; 'make' builds it as build/espalier")
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, which programs inherit
        signal.signal(ignored, signal.SIG_DFL)
    os.execv(tool, ["espalier", *sys.argv[1:]])
