"""`python -m eeio.pts.trial`: the former name of `eeio.exchange.pts.trial`."""

import sys

from eeio.exchange.pts.trial import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
