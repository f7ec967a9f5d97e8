"""``python -m amplint``."""

from amplint.cli.main import main

if __name__ == "__main__":
    main()
