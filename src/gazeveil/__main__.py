"""`python -m gazeveil` is the command `gazeveil`."""

from __future__ import annotations

from gazeveil.cli.main import main

if __name__ == "__main__":
    main()
