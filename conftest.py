"""The fixtures of all tests, in tests/ and beside the parsers."""

pytest_plugins = ["tests.plugin", "tests.eeio.importing.fixtures"]
