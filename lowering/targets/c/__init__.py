"""The text of kernel IR in dialects of C."""
