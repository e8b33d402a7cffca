"""A learner and a search of one's own, as docs/extend.md explains them."""
