"""The agents that a team of scripts has: small programs without a model, copied beside its team file.

They are copied unchanged, so each stands alone and reads like an example: the prompt on standard input, the answer on
standard output, always the same answer to the same prompt.
"""

from __future__ import annotations
