"""Executors and processors of providers. They use the packages `openai` and `anthropic`, which you install."""
