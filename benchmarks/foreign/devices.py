"""For which devices the corpus has texts."""

Device = tuple[str, str]  # a dialect and a profile
DEVICES: tuple[Device, ...] = (("cpu", "zen5"), ("cuda", "ampere"), ("cuda", "hopper"), ("hip", "cdna3"))
