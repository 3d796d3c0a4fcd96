"""A tiny cross-encoder model, built on the spot: it scores a pair by the tokens that its texts share.

The model is a real ONNX graph for the real runtime. The few protobuf messages of the file are written by hand, so that
no test needs the onnx package (onnx.proto, opset 11).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

FLOAT, INT64 = 1, 7
INT, INTS = 2, 7
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def make(folder: Path, *, words: Sequence[str], broken: bool = False, by_token: bool = False) -> Path:
    """Write the model's folder. `words` is its vocabulary. `broken`: its output is not a number. `by_token`: it
    returns one score for each two tokens.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(_model(broken=broken, by_token=by_token))
    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *dict.fromkeys(map(str.lower, words))))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    for name, content in {
        "config.json": {"pad_token_id": 0},
        "tokenizer_config.json": {"model_max_length": 64, "pad_token": "[PAD]"},
        "special_tokens_map.json": {"pad_token": "[PAD]", "unk_token": "[UNK]"},
    }.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


def _model(*, broken: bool, by_token: bool) -> bytes:
    """Build the graph that counts, for each pair, the tokens without padding that equal another one, counted both
    ways.
    """
    nodes = [
        _node("Unsqueeze", ["input_ids"], "rows", axes=[2]),
        _node("Unsqueeze", ["input_ids"], "columns", axes=[1]),
        _node("Equal", ["rows", "columns"], "same"),
        _node("Cast", ["same"], "equal", to=FLOAT),
        _node("Cast", ["attention_mask"], "there", to=FLOAT),
        _node("Unsqueeze", ["there"], "there_rows", axes=[2]),
        _node("Unsqueeze", ["there"], "there_columns", axes=[1]),
        _node("Mul", ["equal", "there_rows"], "half_masked"),
        _node("Mul", ["half_masked", "there_columns"], "masked"),
        _node("ReduceSum", ["masked"], "counted", axes=[1, 2], keepdims=0),
        _node("ReduceSum", ["there"], "themselves", axes=[1], keepdims=0),
        _node("Sub", ["counted", "themselves"], "others"),
        _node("Sub", ["others", "others"], "nought"),
        _node("Div", ["others", "nought" if broken else "themselves"], "score"),
        _node("Unsqueeze", ["score"], "logits", axes=[1]),
        _node("Sub", ["masked", "masked"], "noughts"),
        _node("Div", ["masked", "noughts"], "no_numbers"),
    ]
    graph = b"".join(_bytes(1, node) for node in nodes) + _bytes(2, b"shared_words")
    graph += b"".join(_bytes(11, _value(name, INT64, ("pairs", "tokens"))) for name in ("input_ids", "attention_mask"))
    by_each = ("no_numbers" if broken else "masked", ("pairs", "tokens", "others"))
    told = by_each if by_token else ("logits", ("pairs", "one"))
    graph += _bytes(12, _value(told[0], FLOAT, told[1]))
    return _int(1, 6) + _bytes(7, graph) + _bytes(8, _bytes(1, b"") + _int(2, 11))


def _node(kind: str, inputs: Sequence[str], output: str, **attributes: int | list[int]) -> bytes:
    node = b"".join(_bytes(1, name.encode()) for name in inputs) + _bytes(2, output.encode()) + _bytes(4, kind.encode())
    for name, value in attributes.items():
        if isinstance(value, list):
            body = b"".join(_int(8, each) for each in value) + _int(20, INTS)
        else:
            body = _int(3, value) + _int(20, INT)
        node += _bytes(5, _bytes(1, name.encode()) + body)
    return node


def _value(name: str, kind: int, dimensions: Sequence[str]) -> bytes:
    shape = b"".join(_bytes(1, _bytes(2, each.encode())) for each in dimensions)
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, _int(1, kind) + _bytes(2, shape)))


# ------------------------------------------------------------------------------------------------ protobuf
def _int(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))
