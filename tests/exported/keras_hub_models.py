"""Small nets of KerasHub's architectures, for keras_models.py."""

import numpy as np

from keras_models import MAKERS, ids, image, model, normal

SMALL = dict(num_layers=2, num_heads=4, hidden_dim=32, intermediate_dim=64)
TEXT = dict(SMALL, vocabulary_size=60)
LIMITED = dict(TEXT, max_sequence_length=32)
GROUPED = dict(vocabulary_size=60, num_layers=2, num_query_heads=4, num_key_value_heads=2, hidden_dim=32, intermediate_dim=64)
PICTURES = dict(SMALL, patch_size=8, image_shape=(32, 32, 3))


def tokens(length=12, prefix="", segments=False, mask=True):
    feeds = {"token_ids": ids(60, length)}
    if mask:
        feeds["padding_mask"] = (np.arange(length) < np.array([[length], [length - 4]])).astype("int32")
    if segments:
        feeds["segment_ids"] = (np.arange(length) > 5).astype("int32")[None].repeat(2, 0)
    return {prefix + key: value for key, value in feeds.items()}


def both_sides():
    return tokens(prefix="encoder_") | tokens(8, "decoder_")


def small(name, options, feed=tokens):
    def maker():
        import keras_hub
        return getattr(keras_hub.models, name)(**options), feed()
    MAKERS[f"hub/{name}"] = maker


def segmented():
    return tokens(segments=True)


small("BertBackbone", LIMITED, segmented)
small("AlbertBackbone", dict(LIMITED, embedding_dim=16), segmented)
small("BartBackbone", LIMITED, both_sides)
small("BloomBackbone", TEXT)
small("DebertaV3Backbone", dict(LIMITED, bucket_size=8))
small("DistilBertBackbone", LIMITED)
small("ElectraBackbone", dict(SMALL, vocab_size=60, embedding_dim=16, max_sequence_length=32), segmented)
small("FNetBackbone", {key: value for key, value in LIMITED.items() if key != "num_heads"},
      lambda: tokens(segments=True, mask=False))
small("GPT2Backbone", LIMITED)
small("GPTNeoXBackbone", LIMITED)
small("OPTBackbone", LIMITED)
small("RobertaBackbone", LIMITED)
small("XLMRobertaBackbone", LIMITED)
small("RoformerV2Backbone", dict(TEXT, max_wavelength=100, head_size=8), lambda: tokens(segments=True, mask=False))
small("ESMBackbone", dict(SMALL, vocabulary_size=60, max_wavelength=100), lambda: tokens(mask=False))
small("XLNetBackbone", TEXT, segmented)
small("T5Backbone", TEXT, both_sides)
small("WhisperBackbone", dict(TEXT, num_mels=20, max_encoder_sequence_length=64, max_decoder_sequence_length=32),
      lambda: {"encoder_features": normal(2, 64, 20)} | tokens(8, "decoder_"))
small("LlamaBackbone", GROUPED)
small("Llama3Backbone", GROUPED)
small("MistralBackbone", dict(GROUPED, sliding_window=6))
small("QwenBackbone", GROUPED)
small("Qwen3Backbone", dict(GROUPED, head_dim=8))
small("Phi3Backbone", GROUPED)
small("GemmaBackbone", dict(GROUPED, head_dim=8))
small("Gemma3Backbone", dict(
    GROUPED, image_size=16, head_dim=8, query_head_dim_normalize=True, use_query_key_norm=True, use_post_ffw_norm=True,
    use_post_attention_norm=True, final_logit_soft_cap=None, attention_logit_soft_cap=None, use_sliding_window_attention=True,
    sliding_window_size=8, vision_encoder=None))
small("MixtralBackbone", dict(GROUPED, num_experts=4, top_k=2, sliding_window=8))
small("QwenMoeBackbone", dict(GROUPED, num_experts=4, top_k=2, moe_intermediate_dim=16, shared_expert_intermediate_dim=32, head_dim=8))
small("FalconBackbone", dict(vocabulary_size=60, num_layers=2, num_attention_heads=4, hidden_dim=32, intermediate_dim=64))
small("ViTBackbone", dict(image_shape=(32, 32, 3), patch_size=(8, 8), num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=64),
      lambda: image(32))
small("DeiTBackbone", dict(SMALL, image_shape=(32, 32, 3), patch_size=(8, 8)), lambda: image(32))
small("DINOV2Backbone", dict(SMALL, image_shape=(28, 28, 3), patch_size=7, position_embedding_shape=(28, 28)),
      lambda: {"images": image(28)})
small("CLIPVisionEncoder", PICTURES, lambda: {"images": image(32)})
small("CLIPTextEncoder", dict(SMALL, vocabulary_size=60, embedding_dim=32, max_sequence_length=12), lambda: tokens(mask=False))
small("SigLIPVisionEncoder", PICTURES, lambda: {"images": image(32)})
small("ViTDetBackbone", dict(
    hidden_size=32, num_layers=2, intermediate_dim=64, num_heads=4, global_attention_layer_indices=[1], image_shape=(64, 64, 3),
    patch_size=8, num_output_channels=16, window_size=4), lambda: image(64))
MIX = dict(
    image_shape=(64, 64, 3), layerwise_depths=[1, 1, 1, 1], num_layers=4, layerwise_num_heads=[1, 2, 4, 4], max_drop_path_rate=0.1,
    layerwise_sr_ratios=[8, 4, 2, 1], layerwise_patch_sizes=[7, 3, 3, 3], layerwise_strides=[4, 2, 2, 2], hidden_dims=[8, 16, 32, 32])
small("MiTBackbone", MIX, lambda: image(64))
small("DenseNetBackbone", dict(stackwise_num_repeats=[2, 2], image_shape=(64, 64, 3)), lambda: image(64))
small("XceptionBackbone", dict(stackwise_conv_filters=[[8, 16], [16, 16]], stackwise_pooling=[False, True], image_shape=(64, 64, 3)),
      lambda: image(64))
small("HGNetV2Backbone", dict(
    depths=[1, 1], embedding_size=16, hidden_sizes=[16, 32], stem_channels=[3, 8, 16], hidden_act="relu",
    use_learnable_affine_block=True, stackwise_stage_filters=[[16, 8, 16, 1, 2, 3], [16, 8, 32, 1, 2, 3]],
    apply_downsample=[False, True], use_lightweight_conv_block=[False, True], image_shape=(64, 64, 3)), lambda: image(64))
small("EfficientNetBackbone", dict(
    stackwise_width_coefficients=[1.0] * 3, stackwise_depth_coefficients=[1.0] * 3, stackwise_kernel_sizes=[3, 3, 5],
    stackwise_num_repeats=[1, 1, 2], stackwise_input_filters=[32, 16, 24], stackwise_output_filters=[16, 24, 32],
    stackwise_expansion_ratios=[1, 4, 6], stackwise_strides=[1, 2, 2], stackwise_squeeze_and_excite_ratios=[0.25, 0, 0.25],
    stackwise_block_types=["v1", "fused", "unfused"], image_shape=(64, 64, 3)), lambda: image(64))
small("MobileNetBackbone", dict(
    stackwise_expansion=[[40, 56], [64, 144]], stackwise_num_blocks=[2, 2], stackwise_num_filters=[[16, 16], [24, 24]],
    stackwise_kernel_size=[[3, 3], [5, 5]], stackwise_num_strides=[[2, 1], [2, 1]],
    stackwise_se_ratio=[[None, None], [0.25, 0.25]], stackwise_activation=[["relu", "relu"], ["hard_swish", "hard_swish"]],
    stackwise_padding=[[1, 1], [2, 2]], output_num_filters=64, input_num_filters=16, image_shape=(64, 64, 3),
    input_activation="hard_swish", output_activation="hard_swish", depthwise_filters=8, depthwise_stride=2,
    depthwise_residual=False, squeeze_and_excite=0.25, last_layer_filter=64), lambda: image(64))


def residual(size, block="bottleneck_block", **options):
    import keras_hub
    return keras_hub.models.ResNetBackbone(**{**dict(
        input_conv_filters=[16], input_conv_kernel_sizes=[7], stackwise_num_filters=[64, 32, 32, 32],
        stackwise_num_blocks=[1, 1, 1, 1], stackwise_num_strides=[1, 2, 2, 2], block_type=block,
        image_shape=(size, size, 3)), **options})


@model("hub/ResNetBackbone")
def resnet():
    return residual(64), image(64)


@model("hub/ResNetBackbone_vd")
def resnet_vd():
    return residual(64, "basic_block_vd", input_conv_filters=[8, 8, 16], input_conv_kernel_sizes=[3, 3, 3]), image(64)


@model("hub/GPT2CausalLM")
def gpt2():
    import keras_hub
    return keras_hub.models.GPT2CausalLM(keras_hub.models.GPT2Backbone(**LIMITED)), tokens()


@model("hub/RetinaNetObjectDetector")
def retina():
    import keras_hub
    net = keras_hub.models.RetinaNetBackbone(image_encoder=residual(128), min_level=3, max_level=5, use_p5=False)
    return keras_hub.models.RetinaNetObjectDetector(net, num_classes=4, preprocessor=None), image(128)


@model("hub/SegFormerImageSegmenter")
def segformer():
    import keras_hub
    net = keras_hub.models.SegFormerBackbone(image_encoder=keras_hub.models.MiTBackbone(**MIX), projection_filters=16)
    return keras_hub.models.SegFormerImageSegmenter(net, num_classes=3, preprocessor=None), image(64)
