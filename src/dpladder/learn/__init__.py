"""Private training: learners behind one interface, the engine they share, and the noised score."""
