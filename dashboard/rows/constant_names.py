"""What the constants of a profile are, for who reads a name such as 4bit.wide.13.flops_per_s."""

from __future__ import annotations

import re

from model.machine.profile import TWO_PASS, UNFUSED

LAW = re.compile(r"(?:(?P<format>[\w-]+)\.(?P<shape>\w+)|attention)\.(?P<row>\d+)\.(?P<rate>\w+)")
SUBMISSION = re.compile(r"(?P<format>[\w-]+)\.submit_(?P<rows>one_row|more_rows)_s")

SINGLE = {
    "kernel_s": "the least that one kernel takes",
    "layer_s": "what a layer takes beside its matrices and attention",
    "more_rows_layer_s": "what a layer takes on top as soon as a pass has several rows",
    "element_s": "element-wise work, for each row and hidden unit of a layer",
    "pass_s": "what a pass takes once: embedding, last norm, sampling",
    "logit_s": "sampling, for each row and entry of the vocabulary",
    "experts_layer_s": "what choosing experts adds to a layer that has them",
    "recurrent_layer_s": "what a recurrent mixer adds to a layer",
    "norm_s": "a norm beyond the two of a usual layer",
    "head_norm_s": "a norm of queries or keys",
    "unfused_layer_s": "what attention of several kernels adds to a layer",
    "score_s": "a score of attention goes through memory and back",
    "batch_layer_s": "what a layer takes on top as soon as several sequences share the pass",
    "build_layer_s": "the processor builds the graph of a layer",
    "build_pass_s": "the processor builds the rest of a pass",
    "submit_layer_s": "the processor submits the kernels of a layer",
    "submit_pass_s": "the processor submits the rest of a pass",
    "sync_s": "the processor waits for a result and reads it",
    "reshape_s": "the processor plans attention for several rows at a context it has not met",
    "read_s": "the processor reads a result that is there already",
    "submit_more_rows_layer_s": "the processor submits a layer of several rows: what that adds",
    "build_experts_layer_s": "the processor builds what choosing experts adds to a layer",
    "submit_experts_layer_s": "the processor submits what choosing experts adds to a layer",
    "build_norm_s": "the processor builds a norm beyond the two of a usual layer",
    "submit_norm_s": "the processor submits a norm beyond the two of a usual layer",
    "build_batch_layer_s": "the processor builds what a batch adds to a layer",
    "submit_batch_layer_s": "the processor submits what a batch adds to a layer",
    "walk_share": "the share of submitting a pass that comes before its first kernel",
    "build_unfused_layer_s": "the processor builds attention of several kernels: what it adds",
    "submit_unfused_layer_s": "the processor submits attention of several kernels: what it adds",
    "submit_library_attention_s": "the processor hands the attention of one row to a library",
    "apart_reread": "the share of the weights that a further sequence of a batch reads again",
    "sustained_share": "the share of its cold speed that remains after minutes of work",
}
SHAPES = {
    "wide": "matrices with more outputs than inputs",
    "tall": "matrices with more inputs than outputs",
    "square": "square matrices",
    "head": "the matrix of the vocabulary",
    "expert": "matrices of experts",
}
FAMILIES = {"affine": "2 to 8 bits", "fp": "mxfp4 and its like", "float": "16 bits"}
"""Of a family a profile states one law for matrices of all shapes."""
RATES = {
    "bandwidth_bytes_per_s": "how fast it reads",
    "flops_per_s": "how fast it computes",
}


def meaning(name: str) -> str:
    """A constant in words; its name where it has none.

    >>> meaning("4bit.wide.13.flops_per_s")
    'how fast it computes: 4bit, matrices with more outputs than inputs, the kernel from 13 rows on'
    """
    law, submission = LAW.fullmatch(name), SUBMISSION.fullmatch(name)
    if law is not None:
        of = "attention over the cache"
        if law["format"]:
            of = f"{law['format']}, {SHAPES.get(law['shape'], law['shape'])}"
        if law["format"] == UNFUSED:
            of = "attention that is not one kernel, as of a batch"
        if law["format"] == TWO_PASS:
            of = "attention over a long cache, in two passes"
        if law["format"] in FAMILIES:
            of = f"matrices in {FAMILIES[law['format']]}"
        row = int(law["row"])
        kernel = "the kernel for few rows" if row == 1 else f"the kernel from {row} rows on"
        return f"{RATES.get(law['rate'], law['rate'])}: {of}, {kernel}"
    if submission is not None:
        rows = "one row" if submission["rows"] == "one_row" else "several rows"
        return f"the processor submits one {submission['format']} matrix product of {rows}"
    return SINGLE.get(name, name)
