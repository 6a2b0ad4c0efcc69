"""`python -m tests.machines` writes docs/machines.md anew."""

from tests.machines import page

page.PATH.write_text(page.text(), encoding="utf-8")
