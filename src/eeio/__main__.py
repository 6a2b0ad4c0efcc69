"""`python -m eeio`."""

import sys

from eeio.cli import main

sys.exit(main())
