"""Anthropic."""
