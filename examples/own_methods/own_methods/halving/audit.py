"""How it is attacked, by `dpladder audit`: with these options, in the rule that runs it."""

OPTIONS = {"rounds": 2}
SCORED = False  # the training that is put out spends all of its mu on weights
