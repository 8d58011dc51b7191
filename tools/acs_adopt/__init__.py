"""Parts of acs-adopt: text of a source file, what a program is like, and the rules for launches and calls."""
