"""The sizes of photos."""

from __future__ import annotations

import unittest

from shrink.size import fitted


class Sizes(unittest.TestCase):
    def test_a_landscape(self) -> None:
        self.assertEqual(fitted(4000, 3000, 800), (800, 600))

    def test_a_portrait(self) -> None:
        self.assertEqual(fitted(3000, 4000, 800), (600, 800))
