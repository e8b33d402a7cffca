"""What the literature sets beside dpladder's own methods: learners, private searches and contests.

They enter by entry points, as methods of other people's packages do. Nothing in `dpladder` imports
this package, and all of dpladder's own works without it (docs/papers.md).
"""
