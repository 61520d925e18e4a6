"""What a device does in one instruction: definitions, operands, and the match with a leaf of a schedule."""
