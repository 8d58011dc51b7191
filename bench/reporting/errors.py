"""What is said of input that cannot be used.

Raised by whatever reads input, told to the user by command.py; nothing here prints or ends the program.
"""


class BadInput(Exception):
    """Its text names the file, and within the file the field."""
