"""The agents that `teamchat init --template offline` writes: small programs with no model behind them."""
