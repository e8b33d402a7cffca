"""Typed config: the one truth from which defaults, schema, documentation and error messages are
made."""

from dpladder.config.load import Project, from_command_line, load
from dpladder.config.model import Config

__all__ = ["Config", "Project", "from_command_line", "load"]
