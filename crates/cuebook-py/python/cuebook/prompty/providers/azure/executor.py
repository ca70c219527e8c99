"""The name of an older version for `FoundryExecutor`."""

from ..foundry.executor import FoundryExecutor

AzureExecutor = FoundryExecutor

__all__ = ["AzureExecutor"]
