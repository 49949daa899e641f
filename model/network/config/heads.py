"""From the config.json of a draft head to the head, one function per family.

A family is told by `architectures` where the config's `model_type` is that of the target (DFlash,
DSpark and EAGLE-3 call themselves qwen3, gemma4_text or llama), and by `model_type` otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from model.network.config.block_heads import dflash, dflash2, dspark
from model.network.config.fields import Fields
from model.network.config.token_heads import eagle3, gemma4_assistant, qwen3_5_mtp, redrafter
from model.network.draft_head import DraftHead

HEAD_FAMILIES: dict[str, Callable[[Fields, str], DraftHead]] = {
    "DFlash2DraftModel": dflash2,
    "DFlashDraftModel": dflash,
    "DSparkDraftModel": dspark,
    "Eagle3DraftModel": eagle3,
    "Gemma4DFlashModel": dflash,
    "Gemma4DSparkModel": dspark,
    "LlamaForCausalLMEagle3": eagle3,
    "Qwen3DSparkModel": dspark,
    "eagle3": eagle3,
    "gemma4_assistant": gemma4_assistant,
    "gemma4_unified_assistant": gemma4_assistant,
    "qwen3_5_mtp": qwen3_5_mtp,
    "recurrent_drafting_drafter": redrafter,
}
"""What reads each entry of `architectures`, `speculators_model_type` or `model_type`."""


def read_head(config: Mapping[str, object], *, name: str, source: str) -> DraftHead:
    """The draft head that a config.json describes; `source` opens every error line.

    Raises:
        InputError: no known head, or a field that is missing or cannot be.
    """
    fields = Fields(values=config, where=source)
    declared = [str(each) for each in fields.items("architectures")]
    declared += [fields.text(key, "") for key in ("speculators_model_type", "model_type")]
    family = next((HEAD_FAMILIES[each] for each in declared if each in HEAD_FAMILIES), None)
    if family is None:
        right = "give an MTP, EAGLE-3, DFlash, DSpark, Gemma assistant or ReDrafter head"
        raise fields.refusal("model_type", "is not a known draft head", right)
    return family(fields, name)
