"""The public transformations, and the programs behind them: from a call to what runs."""
