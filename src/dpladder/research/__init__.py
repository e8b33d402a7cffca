"""Contests on data declared public: learners and searches side by side at equal totals."""
