"""The agents that `teamchat init --template offline` writes beside a team file: small programs without a model.

They are copied unchanged, so each stands alone and reads like an example: the prompt on standard input, the answer on
standard output, always the same answer to the same prompt.
"""

from __future__ import annotations
