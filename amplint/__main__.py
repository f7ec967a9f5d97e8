"""``python -m amplint``, for which Python looks for modules in the current folder first: those are the user's."""

import os
import sys

if __name__ == "__main__":
    if sys.path[0] == os.getcwd() != os.path.dirname(os.path.dirname(__file__)):
        del sys.path[0]
    from amplint.cli.main import main

    main()
