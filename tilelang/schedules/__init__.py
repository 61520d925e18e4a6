"""How it is computed: steps, the builder, the spec after each step, and what is refused."""
