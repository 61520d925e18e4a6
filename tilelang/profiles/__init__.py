"""Device descriptions: levels, memories, limits and rates. The shipped profiles are the TOML files of this folder."""
