"""`python -m eeio.pts.protocol`: the former name of `eeio.exchange.pts.protocol`."""

import sys

from eeio.exchange.pts.protocol import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
