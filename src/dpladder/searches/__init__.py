"""The private searches, a folder each: `METHOD`, its section, its price, and how it searches."""
