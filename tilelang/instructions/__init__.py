"""Instructions: definitions, operands, and matching with the innermost body of a schedule."""
