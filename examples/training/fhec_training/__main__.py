"""The command line: `python -m fhec_training COMMAND …`, or `fhec-training COMMAND …` once it is installed."""

from __future__ import annotations

import sys
from importlib import import_module

COMMANDS = {
    "train": ("train", "train a network from scratch"),
    "export": ("onnx_export", "write a trained network as ONNX"),
    "evaluate": ("evaluate", "accuracy of ONNX files, alone and as an ensemble"),
    "draw": ("draw", "draw handwritten-looking digits"),
}


def main() -> None:
    command = sys.argv[1] if len(sys.argv) > 1 else None
    if command in COMMANDS:
        # Only what the command needs is imported: drawing needs no torch.
        import_module(f"fhec_training.{COMMANDS[command][0]}").main(sys.argv[2:])
        return
    lines = ["usage: fhec-training COMMAND ... (--help after a command tells the rest)"]
    lines += [f"  {name:<10}{text}" for name, (_, text) in COMMANDS.items()]
    if command in ("-h", "--help"):
        print("\n".join(lines))
        return
    raise SystemExit("\n".join(lines if command is None else [f"no command is called {command!r}", *lines]))


if __name__ == "__main__":
    main()
