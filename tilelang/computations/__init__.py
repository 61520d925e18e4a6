"""What is computed: tensors, definitions, the functions that a definition may call, and the checks of its reads."""
