"""The guarantee of a finished workflow, as a document that can be checked and a page that can be
signed."""
