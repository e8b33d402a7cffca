"""What people say of a model that is published."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dpladder.section import Section, Words


class Deployment(Section):
    """What only people know of what is published, for the statement and `dpladder register`."""

    name: Words
    """What the published model is called. Example: Chest findings, hospital A"""
    curators: Annotated[tuple[Words, ...], Field(min_length=1)]
    """Organisations that publish it. Example: [Hospital A]"""
    authors: Annotated[tuple[Words, ...], Field(min_length=1)]
    """Who fills this in and answers questions about it. Example: [Anna Roe]"""
    use: Words
    """What it is meant for, and what not. Example: To sort a worklist, never to diagnose"""
    data: Words
    """What the private data is: about whom, from where, collected when and why. Example: Chest
    images of adult patients, 2015 to 2024, from routine care"""
    region: Words
    """The region that the data describes, or whose law applies. Example: EU"""
    sector: Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"]
    """The field that it belongs to, by the registry's list. Example: Healthcare"""
    access: Words
    """Who may read the private data and DPLADDER_HOME, and what keeps others out. Example: Two
    engineers, by disk encryption and accounts"""
    published: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    """Day of first publication, in quotes. Empty: the statement's day. Example: '2026-01-31'"""
    dynamic: bool = False
    """Whether new data comes in over time."""
