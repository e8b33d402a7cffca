"""Figures and tables of what was released. Nothing here reads private data, so nothing here costs
anything."""
