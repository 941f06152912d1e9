#!/usr/bin/env python3
"""Small language models with weights from a seed, exported by onnxruntime-genai's model builder.

language_models.py NAME PRECISION FOLDER writes FOLDER/onnx/model.onnx."""

import json
import pathlib
import subprocess
import sys

SIZES = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             vocab_size=256, max_position_embeddings=128)
SCALED = dict(embedding_multiplier=12.0, residual_multiplier=0.22, logits_scaling=8.0, attention_multiplier=0.25)
CONV = dict(num_hidden_layers=3, layer_types=["conv", "full_attention", "conv"])
# Transformers' class, and what its configuration has beside the sizes.
MODELS = {
    "llama": ("Llama", {}),
    "llama3": ("Llama", dict(rope_parameters=dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0,
                                                  high_freq_factor=4.0, original_max_position_embeddings=32))),
    "mistral": ("Mistral", dict(sliding_window=8)),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", dict(head_dim=16)),
    "phi": ("Phi", dict(num_key_value_heads=4, hidden_size=128)),
    "phi3": ("Phi3", dict(pad_token_id=0, original_max_position_embeddings=128)),
    "phi3_long": ("Phi3", dict(pad_token_id=0, max_position_embeddings=256, original_max_position_embeddings=64,
                               rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, factor=4.0,
                                                    original_max_position_embeddings=64,
                                                    short_factor=[1.0 + 0.01 * i for i in range(8)],
                                                    long_factor=[2.0 + 0.1 * i for i in range(8)]))),
    "gemma": ("Gemma", dict(head_dim=16)),
    "gemma2": ("Gemma2", dict(head_dim=16, query_pre_attn_scalar=16, sliding_window=8)),
    "granite": ("Granite", SCALED),
    "granite_hybrid": ("GraniteMoeHybrid", dict(layers_block_type=["attention"] * 2, num_local_experts=0,
                                                shared_intermediate_size=128, **SCALED)),
    "nemotron": ("Nemotron", dict(hidden_size=128)),
    "olmo": ("Olmo", {}),
    "ernie": ("Ernie4_5", dict(head_dim=16)),
    "hunyuan": ("HunYuanDenseV1", dict(head_dim=16)),
    "gpt_oss": ("GptOss", dict(head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=8, intermediate_size=64)),
    "lfm2": ("Lfm2", dict(block_multiple_of=16, **CONV)),
    "lfm2_moe": ("Lfm2Moe", dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64, num_dense_layers=1, **CONV)),
}


def save(name, folder):
    """The model as Transformers saves it, with a tokenizer of a few words, without which nothing is exported."""
    import tokenizers
    import torch
    import transformers

    kind, rest = MODELS[name]
    torch.manual_seed(0)
    model = getattr(transformers, kind + "ForCausalLM")(getattr(transformers, kind + "Config")(**{**SIZES, **rest}))
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.15)
        else:
            parameter.data += torch.randn_like(parameter) * 0.1
    model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    for i, key in enumerate(("pad_token_id", "bos_token_id", "eos_token_id")):
        config[key] = i if config.get(key) is None else config[key]
    if name == "phi3_long":  # the builder reads what Transformers wrote before version 5
        config["rope_scaling"] = {**config.pop("rope_parameters"), "type": "longrope"}
    (folder / "config.json").write_text(json.dumps(config))
    words = tokenizers.models.WordLevel({f"w{i}": i for i in range(SIZES["vocab_size"])}, unk_token="w3")
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer(words), pad_token="w0", bos_token="w1",
                                         eos_token="w2", unk_token="w3").save_pretrained(folder)


def main():
    name, precision, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    save(name, folder / "transformers")
    # Products of packed weights as floats compute them: at level 4 ONNX Runtime rounds what they are applied to.
    accuracy = ["--extra_options", "accuracy_level=1"] if precision.startswith("int") else []
    subprocess.run([sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", folder / "transformers", "-o", folder / "onnx",
                    "-c", folder / "cache", "-p", precision, "-e", "cpu", *accuracy], check=True)


if __name__ == "__main__":
    main()
