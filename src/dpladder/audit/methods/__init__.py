"""How each learner is attacked, in a module of the name that the config uses."""
