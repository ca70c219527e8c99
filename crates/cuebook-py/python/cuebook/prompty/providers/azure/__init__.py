"""The name of an older version for `foundry`."""
