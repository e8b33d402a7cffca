"""Names that a reader cannot tell apart, such as a Latin and a Cyrillic e: a slip of the keyboard
would make two classes of one."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

# The letters of Unicode's confusables (Technical Standard 39) that Greek and Cyrillic share with
# Latin.
LATIN = str.maketrans(
    "\u0430\u0441\u0501\u0435\u04bb\u0456\u0458\u043e\u0440\u051b\u0455\u0443\u051d\u0445"
    "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0425"
    "\u03bf\u03bd\u0391\u0392\u0395\u0396\u0397\u0399\u039a"
    "\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7",
    "acdehijopqsywxABCEHIJKMOPSTXovABEZHIKMNOPTYX",
)


def look_alikes(names: Sequence[str]) -> tuple[str, str] | None:
    """The first two different names that look the same; None where there are none.

    Args:
        names: in any order, each once.
    """
    seen: dict[str, str] = {}
    for name in names:
        picture = " ".join(unicodedata.normalize("NFKC", name).translate(LATIN).split())
        if picture in seen:
            return seen[picture], name
        seen[picture] = name
    return None
