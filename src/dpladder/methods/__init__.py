"""The learners, a folder each: `METHOD`, its section, what it asks, and how it trains."""
