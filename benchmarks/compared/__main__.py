"""``python benchmarks/compared`` runs this."""

import signal
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    sys.path[:] = [str(HERE.parent), *(path for path in sys.path if Path(path).resolve() != HERE)]
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    from compared.command import main

    sys.exit(main())
