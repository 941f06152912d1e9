"""Models that PyTorch's users export: torchvision's, timm's and Transformers' own, with weights drawn from a seed.

A row is what makes the module and what it is fed. Transformers' are small (two layers of width 64), since their graphs
are the same for any size. Left out are nets whose answers hang on ties or noise: RT-DETR, SSDLite and the detectors of two
stages (R-CNN) pick their best boxes among scores that hardly differ where weights are random, VITS draws its noise while
it runs."""

import torch

VISION = """
    alexnet vgg11_bn resnet18 resnext50_32x4d wide_resnet50_2 densenet121 mobilenet_v2 mobilenet_v3_small
    mobilenet_v3_large efficientnet_b0 efficientnet_v2_s regnet_y_400mf regnet_x_400mf shufflenet_v2_x1_0
    squeezenet1_1 mnasnet1_0 convnext_tiny vit_b_16 swin_t swin_v2_t maxvit_t googlenet inception_v3
""".split()
SEGMENTATION = "deeplabv3_mobilenet_v3_large fcn_resnet50 lraspp_mobilenet_v3_large".split()
DETECTION = "fcos_resnet50_fpn retinanet_resnet50_fpn ssd300_vgg16".split()
VIDEO = {"r3d_18": 112, "mc3_18": 112, "r2plus1d_18": 112, "s3d": 224, "swin3d_t": 224}  # the size of a frame
TIMM = """
    mixer_s32_224 resmlp_12_224 poolformer_s12 levit_128s efficientformer_l1 mobilevit_xs mobilevitv2_050
    edgenext_xx_small coat_tiny crossvit_tiny_240 deit_tiny_patch16_224 beit_base_patch16_224 cait_xxs24_224
    xcit_tiny_12_p16_224 pvt_v2_b0 twins_svt_small gcvit_xxtiny hrnet_w18_small ghostnet_100 repvgg_a0
    tinynet_e lcnet_050 fbnetc_100 hardcorenas_a res2net50_26w_4s resnest14d skresnet18 ese_vovnet19b_dw dla34
    dpn68 selecsls42b cspresnet50 darknet53 nf_resnet50 eca_nfnet_l0 botnet26t_256 lambda_resnet26t
    sebotnet33ts_256 coatnet_nano_rw_224 maxvit_nano_rw_256 focalnet_tiny_srf davit_tiny convnextv2_atto
    inception_next_tiny fastvit_t8 repvit_m0_9 efficientvit_b0 efficientvit_m0 tiny_vit_5m_224 mambaout_femto
    starnet_s1 hiera_tiny_224 eva02_tiny_patch14_224 vit_small_patch14_dinov2 vit_tiny_r_s16_p8_224
    visformer_tiny nest_tiny sequencer2d_s swinv2_cr_tiny_224 tnt_s_legacy_patch16_224 convit_tiny
    ese_vovnet39b seresnet18 gernet_s rexnet_100 mobileone_s0 mobilenetv4_conv_small mobilenetv4_hybrid_medium
    nextvit_small rdnet_tiny shvit_s1 swiftformer_xs vitamin_small_224 regnetz_005 xception41
    inception_resnet_v2 vovnet39a
""".split()

WIDTHS = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
ENCODER = dict(vocab_size=300, **WIDTHS)
DECODER = dict(max_position_embeddings=128, **ENCODER)
SHARED = dict(num_key_value_heads=2, **DECODER)
VIT = dict(image_size=64, patch_size=16, **WIDTHS)
BOTH = dict(vocab_size=300, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128)
GPT = dict(vocab_size=300, n_embd=64, n_layer=2, n_head=4)
T5 = dict(vocab_size=300, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4)
RELATIVE = dict(relative_attention=True, pos_att_type=["p2c", "c2p"], **ENCODER)
WAVES = dict(num_conv_pos_embedding_groups=4, **WIDTHS)


def ids(rows=2, length=17):
    return torch.randint(3, 200, (rows, length))


def text():
    """Two sequences, the second padded."""
    mask = torch.ones(2, 17, dtype=torch.long)
    mask[1, -2:] = 0
    return dict(input_ids=ids(), attention_mask=mask)


def prompt():
    return dict(use_cache=False, **text())


def translation():
    return dict(decoder_input_ids=ids(length=5), **prompt())


def boxes():
    return dict(bbox=torch.tensor([10, 20, 30, 40]).expand(2, 17, 4).contiguous(), **text())


def wave():
    return dict(input_values=torch.rand(1, 8000))


def picture(size=64):
    return lambda: dict(pixel_values=torch.rand(1, 3, size, size))


def frames():
    return dict(pixel_values=torch.rand(1, 4, 3, 64, 64))


# Configuration, model, feeds, sizes.
TRANSFORMERS = {
    "albert": ("Albert", "AlbertModel", text, dict(embedding_size=32, **ENCODER)),
    "ast": ("AST", "ASTForAudioClassification", lambda: dict(input_values=torch.rand(1, 128, 128)),
            dict(max_length=128, **WIDTHS)),
    "bart": ("Bart", "BartForConditionalGeneration", translation, BOTH),
    "beit": ("Beit", "BeitModel", picture(), dict(use_relative_position_bias=True, **VIT)),
    "bert": ("Bert", "BertForQuestionAnswering", text, ENCODER),
    "bloom": ("Bloom", "BloomForCausalLM", prompt, dict(vocab_size=300, hidden_size=64, n_layer=2, n_head=4)),
    "clap": ("ClapAudio", "ClapAudioModel", lambda: dict(input_features=torch.rand(1, 1, 1001, 64)), {}),
    "convbert": ("ConvBert", "ConvBertModel", text, dict(embedding_size=64, **ENCODER)),
    "convnextv2": ("ConvNextV2", "ConvNextV2Model", picture(), {}),
    "deberta": ("Deberta", "DebertaModel", text, RELATIVE),
    "deberta_v2": ("DebertaV2", "DebertaV2Model", text, RELATIVE),
    "dinov2": ("Dinov2", "Dinov2Model", picture(), VIT),
    "distilbert": ("DistilBert", "DistilBertForTokenClassification", text,
                   dict(vocab_size=300, dim=64, n_layers=2, n_heads=4, hidden_dim=128)),
    "electra": ("Electra", "ElectraModel", text, dict(embedding_size=32, **ENCODER)),
    "encodec": ("Encodec", "EncodecModel", lambda: dict(input_values=torch.rand(1, 1, 4800)), {}),
    "falcon": ("Falcon", "FalconForCausalLM", prompt,
               dict(vocab_size=300, hidden_size=64, num_hidden_layers=2, num_attention_heads=4)),
    "gemma3": ("Gemma3Text", "Gemma3ForCausalLM", prompt, dict(head_dim=16, **SHARED)),
    "gpt2": ("GPT2", "GPT2LMHeadModel", prompt, dict(n_positions=128, **GPT)),
    "gpt_neox": ("GPTNeoX", "GPTNeoXForCausalLM", prompt, DECODER),
    "gptj": ("GPTJ", "GPTJForCausalLM", prompt, dict(rotary_dim=8, **GPT)),
    "hubert": ("Hubert", "HubertModel", wave, WAVES),
    "layoutlm": ("LayoutLM", "LayoutLMModel", boxes, ENCODER),
    "llama": ("Llama", "LlamaForCausalLM", prompt, SHARED),
    "longformer": ("Longformer", "LongformerModel",
                   lambda: dict(input_ids=ids(length=32), attention_mask=torch.ones(2, 32, dtype=torch.long)),
                   dict(attention_window=16, **ENCODER)),
    "mamba": ("Mamba", "MambaForCausalLM", lambda: dict(input_ids=ids(), use_cache=False),
              dict(vocab_size=300, hidden_size=64, num_hidden_layers=2)),
    "marian": ("Marian", "MarianMTModel", translation, dict(pad_token_id=1, **BOTH)),
    "mask2former": ("MaskFormerSwin", "MaskFormerSwinModel", picture(128), {}),
    "mistral": ("Mistral", "MistralForCausalLM", prompt, dict(sliding_window=8, **SHARED)),
    "mobilebert": ("MobileBert", "MobileBertModel", text, dict(vocab_size=300, num_hidden_layers=2)),
    "mobilevit": ("MobileViT", "MobileViTModel", picture(), {}),
    "modernbert": ("ModernBert", "ModernBertModel", text, dict(pad_token_id=0, **ENCODER)),
    "mpnet": ("MPNet", "MPNetModel", text, ENCODER),
    "opt": ("OPT", "OPTForCausalLM", prompt,
            dict(vocab_size=300, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=128,
                 word_embed_proj_dim=64)),
    "perceiver": ("Perceiver", "PerceiverModel", lambda: dict(inputs=torch.rand(2, 30, 32)),
                  dict(d_model=32, num_latents=16, d_latents=64, num_blocks=1, num_self_attends_per_block=2,
                       num_self_attention_heads=4, num_cross_attention_heads=4)),
    "phi3": ("Phi3", "Phi3ForCausalLM", prompt, dict(pad_token_id=0, **SHARED)),
    "qwen3": ("Qwen3", "Qwen3ForCausalLM", prompt, dict(head_dim=16, **SHARED)),
    "roberta": ("Roberta", "RobertaForMaskedLM", text, ENCODER),
    "sam_vision": ("SamVision", "SamVisionModel", picture(128),
                   dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=128, window_size=4,
                        global_attn_indexes=[1], output_channels=32, mlp_dim=128)),
    "segformer": ("Segformer", "SegformerForSemanticSegmentation", picture(), {}),
    "squeezebert": ("SqueezeBert", "SqueezeBertModel", text, dict(embedding_size=64, **ENCODER)),
    "swin": ("Swin", "SwinModel", picture(224), {}),
    "t5": ("T5", "T5ForConditionalGeneration", translation, T5),
    "timesformer": ("Timesformer", "TimesformerModel", frames, dict(num_frames=4, **VIT)),
    "videomae": ("VideoMAE", "VideoMAEModel", frames, dict(num_frames=4, **VIT)),
    "vit": ("ViT", "ViTForImageClassification", picture(), VIT),
    "wav2vec2": ("Wav2Vec2", "Wav2Vec2ForCTC", wave, dict(vocab_size=32, **WAVES)),
    "wavlm": ("WavLM", "WavLMModel", wave, WAVES),
    "xlnet": ("XLNet", "XLNetModel", text, dict(vocab_size=300, d_model=64, n_layer=2, n_head=4, d_inner=128)),
    "yolos": ("Yolos", "YolosForObjectDetection", lambda: dict(pixel_values=torch.rand(1, 3, 96, 64)),
              {**VIT, "image_size": [96, 64]}),
}


def names():
    yield from (f"torchvision/{name}" for name in (*VISION, *SEGMENTATION, *DETECTION, *VIDEO))
    yield from (f"timm/{name}" for name in TIMM)
    yield from (f"transformers/{name}" for name in TRANSFORMERS)


def make(name):
    """The module, and what it is fed: a tuple, or a dict whose values that are no tensors stay as they are."""
    library, _, name = name.partition("/")
    if library == "torchvision":
        return of_torchvision(name)
    if library == "timm":
        import timm
        model = timm.create_model(name, pretrained=False, exportable=True)
        return model, (torch.rand(1, *model.default_cfg["input_size"]),)
    import transformers
    config_name, model_name, feeds, sizes = TRANSFORMERS[name]
    config = getattr(transformers, config_name + "Config")(**sizes)
    kind = getattr(transformers, model_name)
    try:
        config._attn_implementation = "sdpa"
        model = kind(config)
    except ValueError:  # not for this model yet
        config._attn_implementation = "eager"
        model = kind(config)
    return model, feeds()


def of_torchvision(name):
    from torchvision import models
    if name in DETECTION:
        # Chance seldom reaches the usual threshold.
        model = getattr(models.detection, name)(weights=None, weights_backbone=None, score_thresh=0.0)
        return model, ([torch.rand(3, 240, 320)],)
    if name in SEGMENTATION:
        model = getattr(models.segmentation, name)(weights=None, weights_backbone=None)
        return model, (torch.rand(1, 3, 224, 224),)
    if name in VIDEO:
        return getattr(models.video, name)(weights=None), (torch.rand(1, 3, 16, VIDEO[name], VIDEO[name]),)
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    size = 299 if name == "inception_v3" else 224
    return getattr(models, name)(weights=None, **options), (torch.rand(1, 3, size, size),)
