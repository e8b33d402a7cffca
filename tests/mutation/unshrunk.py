"""A plugin for runs on planted bugs: that a test fails is enough, however large its example."""

from hypothesis import Phase, settings

settings.register_profile("unshrunk", phases=[Phase.explicit, Phase.generate])
settings.load_profile("unshrunk")
