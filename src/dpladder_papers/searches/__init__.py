"""Private searches of the literature, a folder each, and what several of them share."""
