"""The template engines, as in `prompty.renderers`."""

from . import Jinja2Renderer, MustacheRenderer

__all__ = ["Jinja2Renderer", "MustacheRenderer"]
