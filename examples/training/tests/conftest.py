"""The tests need the package on the path, and all but those of the fit need torch: they skip, and say so, without it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
