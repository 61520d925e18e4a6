"""Where campaigns note what they run: what is kept is in the corpus."""

import tempfile
from pathlib import Path

LOG = Path(tempfile.gettempdir()) / "tilelang-foreign"
