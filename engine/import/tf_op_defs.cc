// Op definitions from the file, and the table of our own: one row per op that has default values
// or several named outputs. Ops that are not listed have one output argument and no defaults.
#include "engine/import/tf_op_defs.h"

#include <cstdlib>
#include <deque>
#include <protozero/pbf_writer.hpp>

#include "engine/import/tf_tensor.h"

namespace oncilla {
namespace {

// `outputs`: argument names; "name*N" stands for as many tensors as attribute N says, "name@T" for
// one per type in attribute T. `defaults`: attr=kind:value with the kinds b(ool), i(nt), f(loat),
// s(tring), t(ype), l(ist of ints, or an empty list of anything), u(nknown shape).
struct Row {
  const char* op;
  const char* outputs;
  const char* defaults;
};

constexpr Row kRows[] = {
    {"_FusedConv2D", "",
     "num_host_args=i:0 explicit_paddings=l: data_format=s:NHWC filter_format=s:HWIO "
     "dilations=l:1,1,1,1 fused_ops=l: epsilon=f:9.99999975e-05 leakyrelu_alpha=f:0.200000003"},
    {"_FusedMatMul", "",
     "transpose_a=b:0 transpose_b=b:0 fused_ops=l: epsilon=f:9.99999975e-05 "
     "leakyrelu_alpha=f:0.200000003"},
    {"AdjustContrastv2", "", "T=t:float"},
    {"AdjustHue", "", "T=t:float"},
    {"AdjustSaturation", "", "T=t:float"},
    {"All", "", "keep_dims=b:0 Tidx=t:int32"},
    {"Angle", "", "T=t:complex64 Tout=t:float"},
    {"Any", "", "keep_dims=b:0 Tidx=t:int32"},
    {"ArgMax", "", "Tidx=t:int32 output_type=t:int64"},
    {"ArgMin", "", "Tidx=t:int32 output_type=t:int64"},
    {"Assert", "", "summarize=i:3"},
    {"Assign", "", "validate_shape=b:1 use_locking=b:1"},
    {"AssignVariableOp", "", "validate_shape=b:0"},
    {"AsString", "", "precision=i:-1 scientific=b:0 shortest=b:0 width=i:-1 fill=s:"},
    {"AvgPool", "", "data_format=s:NHWC"},
    {"AvgPool3D", "", "data_format=s:NDHWC"},
    {"BatchMatMul", "", "adj_x=b:0 adj_y=b:0"},
    {"BatchMatMulV2", "", "adj_x=b:0 adj_y=b:0"},
    {"BatchMatMulV3", "", "adj_x=b:0 adj_y=b:0"},
    {"BatchToSpaceND", "", "Tblock_shape=t:int32 Tcrops=t:int32"},
    {"BiasAdd", "", "data_format=s:NHWC"},
    {"BroadcastArgs", "", "T=t:int32"},
    {"BroadcastTo", "", "Tidx=t:int32"},
    {"Cast", "", "Truncate=b:0"},
    {"CombinedNonMaxSuppression", "nmsed_boxes nmsed_scores nmsed_classes valid_detections",
     "pad_per_class=b:0 clip_boxes=b:1"},
    {"Complex", "", "T=t:float Tout=t:complex64"},
    {"ComplexAbs", "", "T=t:complex64 Tout=t:float"},
    {"ConcatV2", "", "Tidx=t:int32"},
    {"Conj", "", "T=t:complex64"},
    {"Conv2D", "", "explicit_paddings=l: data_format=s:NHWC dilations=l:1,1,1,1"},
    {"Conv2DBackpropInput", "", "explicit_paddings=l: data_format=s:NHWC dilations=l:1,1,1,1"},
    {"Conv3D", "", "data_format=s:NDHWC dilations=l:1,1,1,1,1"},
    {"Conv3DBackpropInputV2", "", "data_format=s:NDHWC dilations=l:1,1,1,1,1 Tshape=t:int32"},
    {"CropAndResize", "", "method=s:bilinear extrapolation_value=f:0.0"},
    {"Cumprod", "", "exclusive=b:0 reverse=b:0 Tidx=t:int32"},
    {"Cumsum", "", "exclusive=b:0 reverse=b:0 Tidx=t:int32"},
    {"DecodeAndCropJpeg", "",
     "channels=i:0 ratio=i:1 fancy_upscaling=b:1 try_recover_truncated=b:0 "
     "acceptable_fraction=f:1.0 dct_method=s:"},
    {"DecodeBmp", "", "channels=i:0"},
    {"DecodeCSV", "", "field_delim=s:, use_quote_delim=b:1 na_value=s: select_cols=l:"},
    {"DecodeImage", "", "channels=i:0 dtype=t:uint8 expand_animations=b:1"},
    {"DecodeJpeg", "",
     "channels=i:0 ratio=i:1 fancy_upscaling=b:1 try_recover_truncated=b:0 "
     "acceptable_fraction=f:1.0 dct_method=s:"},
    {"DecodePaddedRaw", "", "little_endian=b:1"},
    {"DecodePng", "", "channels=i:0 dtype=t:uint8"},
    {"DecodeRaw", "", "little_endian=b:1"},
    {"DepthToSpace", "", "data_format=s:NHWC"},
    {"DepthwiseConv2dNative", "", "explicit_paddings=l: data_format=s:NHWC dilations=l:1,1,1,1"},
    {"Dequantize", "", "mode=s:MIN_COMBINED narrow_range=b:0 axis=i:-1 dtype=t:float"},
    {"DrawBoundingBoxes", "", "T=t:float"},
    {"DrawBoundingBoxesV2", "", "T=t:float"},
    {"EncodeBase64", "", "pad=b:0"},
    {"EncodeJpeg", "",
     "format=s: quality=i:95 progressive=b:0 optimize_size=b:0 chroma_downsampling=b:1 "
     "density_unit=s:in x_density=i:300 y_density=i:300 xmp_metadata=s:"},
    {"EncodePng", "", "compression=i:-1 T=t:uint8"},
    {"Equal", "", "incompatible_shape_error=b:1"},
    {"ExpandDims", "", "Tdim=t:int32"},
    {"ExtractGlimpse", "", "centered=b:1 normalized=b:1 uniform_noise=b:1 noise=s:uniform"},
    {"ExtractGlimpseV2", "", "centered=b:1 normalized=b:1 uniform_noise=b:1 noise=s:uniform"},
    {"ExtractJpegShape", "", "output_type=t:int32"},
    {"FakeQuantWithMinMaxArgs", "", "min=f:-6.0 max=f:6.0 num_bits=i:8 narrow_range=b:0"},
    {"FakeQuantWithMinMaxVars", "", "num_bits=i:8 narrow_range=b:0"},
    {"FakeQuantWithMinMaxVarsPerChannel", "", "num_bits=i:8 narrow_range=b:0"},
    {"FFT", "", "Tcomplex=t:complex64"},
    {"FFT2D", "", "Tcomplex=t:complex64"},
    {"FFT3D", "", "Tcomplex=t:complex64"},
    {"Fill", "", "index_type=t:int32"},
    {"FusedBatchNorm", "y batch_mean batch_variance reserve_space_1 reserve_space_2",
     "epsilon=f:9.99999975e-05 exponential_avg_factor=f:1.0 data_format=s:NHWC is_training=b:1"},
    {"FusedBatchNormV2", "y batch_mean batch_variance reserve_space_1 reserve_space_2",
     "epsilon=f:9.99999975e-05 exponential_avg_factor=f:1.0 data_format=s:NHWC is_training=b:1"},
    {"FusedBatchNormV3",
     "y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3",
     "epsilon=f:9.99999975e-05 exponential_avg_factor=f:1.0 data_format=s:NHWC is_training=b:1"},
    {"GatherNd", "", "bad_indices_policy=s:"},
    {"GatherV2", "", "batch_dims=i:0"},
    {"HSVToRGB", "", "T=t:float"},
    {"If", "", "output_shapes=l:"},
    {"IFFT", "", "Tcomplex=t:complex64"},
    {"IFFT2D", "", "Tcomplex=t:complex64"},
    {"IFFT3D", "", "Tcomplex=t:complex64"},
    {"Imag", "", "T=t:complex64 Tout=t:float"},
    {"ImageProjectiveTransformV2", "", "fill_mode=s:CONSTANT"},
    {"ImageProjectiveTransformV3", "", "fill_mode=s:CONSTANT"},
    {"IRFFT", "", "Treal=t:float Tcomplex=t:complex64"},
    {"IRFFT2D", "", "Treal=t:float Tcomplex=t:complex64"},
    {"IRFFT3D", "", "Treal=t:float Tcomplex=t:complex64"},
    {"LeakyRelu", "", "alpha=f:0.200000003 T=t:float"},
    {"LinSpace", "", "Tidx=t:int32"},
    {"LRN", "", "depth_radius=i:5 bias=f:1.0 alpha=f:1.0 beta=f:0.5 T=t:float"},
    {"MatMul", "", "transpose_a=b:0 transpose_b=b:0"},
    {"Max", "", "keep_dims=b:0 Tidx=t:int32"},
    {"MaxPool", "", "T=t:float explicit_paddings=l: data_format=s:NHWC"},
    {"MaxPool3D", "", "data_format=s:NDHWC"},
    {"MaxPoolV2", "", "T=t:float data_format=s:NHWC"},
    {"Mean", "", "keep_dims=b:0 Tidx=t:int32"},
    {"Merge", "output value_index", ""},
    {"Min", "", "keep_dims=b:0 Tidx=t:int32"},
    {"MirrorPad", "", "Tpaddings=t:int32"},
    {"Multinomial", "", "seed=i:0 seed2=i:0 output_dtype=t:int64"},
    {"NonMaxSuppression", "", "iou_threshold=f:0.5"},
    {"NonMaxSuppressionV2", "", "T=t:float T_threshold=t:float"},
    {"NonMaxSuppressionV3", "", "T=t:float T_threshold=t:float"},
    {"NonMaxSuppressionV4", "selected_indices valid_outputs",
     "T=t:float T_threshold=t:float pad_to_max_output_size=b:0"},
    {"NonMaxSuppressionV5", "selected_indices selected_scores valid_outputs",
     "T=t:float pad_to_max_output_size=b:0"},
    {"NotEqual", "", "incompatible_shape_error=b:1"},
    {"OneHot", "", "axis=i:-1 TI=t:int64"},
    {"Pack", "", "axis=i:0"},
    {"Pad", "", "Tpaddings=t:int32"},
    {"PadV2", "", "Tpaddings=t:int32"},
    {"ParseExample",
     "sparse_indices*Nsparse sparse_values@sparse_types sparse_shapes*Nsparse dense_values@Tdense",
     ""},
    {"ParseExampleV2",
     "sparse_indices*num_sparse sparse_values@sparse_types sparse_shapes*num_sparse "
     "dense_values@Tdense ragged_values@ragged_value_types ragged_row_splits@ragged_split_types",
     ""},
    {"ParseSingleExample",
     "sparse_indices*num_sparse sparse_values@sparse_types sparse_shapes*num_sparse "
     "dense_values@Tdense",
     ""},
    {"Placeholder", "", "shape=u:"},
    {"Prod", "", "keep_dims=b:0 Tidx=t:int32"},
    {"QuantizeAndDequantizeV2", "",
     "signed_input=b:1 num_bits=i:8 range_given=b:0 round_mode=s:HALF_TO_EVEN narrow_range=b:0 "
     "axis=i:-1"},
    {"QuantizeAndDequantizeV3", "", "signed_input=b:1 range_given=b:1 narrow_range=b:0 axis=i:-1"},
    {"QuantizeAndDequantizeV4", "",
     "signed_input=b:1 num_bits=i:8 range_given=b:0 round_mode=s:HALF_TO_EVEN narrow_range=b:0 "
     "axis=i:-1"},
    {"QuantizeV2", "output output_min output_max",
     "mode=s:MIN_COMBINED round_mode=s:HALF_AWAY_FROM_ZERO narrow_range=b:0 axis=i:-1 "
     "ensure_minimum_range=f:0.00999999978"},
    {"RandomShuffle", "", "seed=i:0 seed2=i:0"},
    {"RandomStandardNormal", "", "seed=i:0 seed2=i:0"},
    {"RandomUniform", "", "seed=i:0 seed2=i:0"},
    {"RandomUniformInt", "", "seed=i:0 seed2=i:0"},
    {"Range", "", "Tidx=t:int32"},
    {"Real", "", "T=t:complex64 Tout=t:float"},
    {"ReduceJoin", "", "keep_dims=b:0 separator=s:"},
    {"RegexReplace", "", "replace_global=b:1"},
    {"Reshape", "", "Tshape=t:int32"},
    {"ResizeArea", "", "align_corners=b:0"},
    {"ResizeBicubic", "", "align_corners=b:0 half_pixel_centers=b:0"},
    {"ResizeBilinear", "", "align_corners=b:0 half_pixel_centers=b:0"},
    {"ResizeNearestNeighbor", "", "align_corners=b:0 half_pixel_centers=b:0"},
    {"ResourceGather", "", "batch_dims=i:0"},
    {"ReverseV2", "", "Tidx=t:int32"},
    {"RFFT", "", "Treal=t:float Tcomplex=t:complex64"},
    {"RFFT2D", "", "Treal=t:float Tcomplex=t:complex64"},
    {"RFFT3D", "", "Treal=t:float Tcomplex=t:complex64"},
    {"RGBToHSV", "", "T=t:float"},
    {"ScaleAndTranslate", "", "kernel_type=s:lanczos3 antialias=b:1"},
    {"ScatterNd", "", "bad_indices_policy=s:"},
    {"Shape", "", "out_type=t:int32"},
    {"ShapeN", "", "out_type=t:int32"},
    {"Size", "", "out_type=t:int32"},
    {"SpaceToBatchND", "", "Tblock_shape=t:int32 Tpaddings=t:int32"},
    {"SpaceToDepth", "", "data_format=s:NHWC"},
    {"SplitV", "", "Tlen=t:int64"},
    {"Squeeze", "", "squeeze_dims=l:"},
    {"StatelessIf", "", "output_shapes=l:"},
    {"StatelessMultinomial", "", "Tseed=t:int64 output_dtype=t:int64"},
    {"StatelessRandomGetKeyCounter", "key counter", "Tseed=t:int64"},
    {"StatelessRandomGetKeyCounterAlg", "key counter alg", "Tseed=t:int64"},
    {"StatelessRandomNormal", "", "dtype=t:float T=t:int32 Tseed=t:int64"},
    {"StatelessRandomNormalV2", "", "dtype=t:float Tshape=t:int32"},
    {"StatelessRandomUniform", "", "dtype=t:float T=t:int32 Tseed=t:int64"},
    {"StatelessRandomUniformFullInt", "", "dtype=t:uint64 T=t:int32 Tseed=t:int64"},
    {"StatelessRandomUniformFullIntV2", "", "dtype=t:uint64 Tshape=t:int32"},
    {"StatelessRandomUniformInt", "", "Tseed=t:int64"},
    {"StatelessRandomUniformIntV2", "", "Tshape=t:int32"},
    {"StatelessRandomUniformV2", "", "dtype=t:float Tshape=t:int32"},
    {"StatelessTruncatedNormal", "", "dtype=t:float T=t:int32 Tseed=t:int64"},
    {"StatelessTruncatedNormalV2", "", "dtype=t:float Tshape=t:int32"},
    {"StatelessWhile", "", "output_shapes=l: parallel_iterations=i:10"},
    {"StaticRegexReplace", "", "replace_global=b:1"},
    {"StridedSlice", "",
     "begin_mask=i:0 end_mask=i:0 ellipsis_mask=i:0 new_axis_mask=i:0 shrink_axis_mask=i:0"},
    {"StringFormat", "", "template=s:%s placeholder=s:%s summarize=i:3"},
    {"StringJoin", "", "separator=s:"},
    {"StringLength", "", "unit=s:BYTE"},
    {"StringLower", "", "encoding=s:"},
    {"StringNGrams", "ngrams ngrams_splits", "Tsplits=t:int64"},
    {"StringSplit", "indices values shape", "skip_empty=b:1"},
    {"StringSplitV2", "indices values shape", "maxsplit=i:-1"},
    {"StringToNumber", "", "out_type=t:float"},
    {"StringUpper", "", "encoding=s:"},
    {"Substr", "", "unit=s:BYTE"},
    {"Sum", "", "keep_dims=b:0 Tidx=t:int32"},
    {"Switch", "output_false output_true", ""},
    {"Tile", "", "Tmultiples=t:int32"},
    {"TopK", "values indices", "sorted=b:1"},
    {"TopKV2", "values indices", "sorted=b:1 Tk=t:int32 index_type=t:int32"},
    {"Transpose", "", "Tperm=t:int32"},
    {"TruncatedNormal", "", "seed=i:0 seed2=i:0"},
    {"UnicodeDecode", "row_splits char_values",
     "errors=s:replace replacement_char=i:65533 replace_control_characters=b:0 Tsplits=t:int64"},
    {"UnicodeDecodeWithOffsets", "row_splits char_values char_to_byte_starts",
     "errors=s:replace replacement_char=i:65533 replace_control_characters=b:0 Tsplits=t:int64"},
    {"UnicodeEncode", "", "errors=s:replace replacement_char=i:65533 Tsplits=t:int64"},
    {"UnicodeTranscode", "",
     "errors=s:replace replacement_char=i:65533 replace_control_characters=b:0"},
    {"Unique", "y idx", "out_idx=t:int32"},
    {"UniqueV2", "y idx", "Taxis=t:int64 out_idx=t:int32"},
    {"Unpack", "", "axis=i:0"},
    {"UnsortedSegmentJoin", "", "separator=s: Tnumsegments=t:int32"},
    {"VariableShape", "", "out_type=t:int32"},
    {"Where", "", "T=t:bool"},
    {"While", "", "output_shapes=l: parallel_iterations=i:10"},
};

// The pieces of `text` between separators.
std::vector<Bytes> SplitText(Bytes text, char separator) {
  std::vector<Bytes> out;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    out.push_back(text.substr(0, end));
    text.remove_prefix(end == Bytes::npos ? text.size() : end + 1);
  }
  return out;
}

int64_t TypeNumber(Bytes name) {
  for (int64_t number = 1; number < tf_type::kReference; ++number) {
    if (TfTypeName(number) == name) return number;
  }
  return 0;
}

std::string EncodeAttr(Bytes text) {
  const char kind = text[0];
  const std::string value(text.substr(2));
  std::string out;
  protozero::pbf_writer writer(out);
  switch (kind) {
    case 'b':
      writer.add_bool(5, value == "1");
      break;
    case 'i':
      writer.add_int64(3, std::strtoll(value.c_str(), nullptr, 10));
      break;
    case 'f':
      writer.add_float(4, std::strtof(value.c_str(), nullptr));
      break;
    case 's':
      writer.add_bytes(2, value);
      break;
    case 't':
      writer.add_enum(6, static_cast<int32_t>(TypeNumber(value)));
      break;
    case 'u': {
      protozero::pbf_writer shape(writer, 7);
      shape.add_bool(3, true);
      break;
    }
    case 'l': {
      // Not a nested writer: that would leave out an empty list, which is a value here.
      std::string items;
      protozero::pbf_writer list(items);
      for (Bytes item : SplitText(value, ',')) {
        list.add_int64(3, std::strtoll(std::string(item).c_str(), nullptr, 10));
      }
      writer.add_message(1, items);
      break;
    }
  }
  return out;
}

struct BuiltIn {
  std::unordered_map<std::string_view, TfOpDef> ops;
  std::deque<std::string> values;  // what the defaults point into
};

BuiltIn MakeBuiltIn() {
  BuiltIn table;
  for (const Row& row : kRows) {
    TfOpDef def;
    for (Bytes output : SplitText(row.outputs, ' ')) {
      const size_t mark = output.find_first_of("*@");
      TfOpDef::Output parsed;
      parsed.name = output.substr(0, mark);
      if (mark != Bytes::npos) {
        (output[mark] == '*' ? parsed.number_attr : parsed.type_list_attr) =
            output.substr(mark + 1);
      }
      def.outputs.push_back(parsed);
    }
    for (Bytes item : SplitText(row.defaults, ' ')) {
      const size_t equals = item.find('=');
      table.values.push_back(EncodeAttr(item.substr(equals + 1)));
      def.defaults.push_back({item.substr(0, equals), table.values.back()});
    }
    table.ops.emplace(row.op, std::move(def));
  }
  return table;
}

const TfOpDef* FindBuiltIn(std::string_view op) {
  static const BuiltIn table = MakeBuiltIn();
  const auto it = table.ops.find(op);
  return it == table.ops.end() ? nullptr : &it->second;
}

TfOpDef::Output ParseOutput(Bytes arg_def) {
  TfOpDef::Output output;
  WireMessage message(arg_def);
  while (message.Next()) {
    if (message.field() == 1) output.name = message.View();
    if (message.field() == 3) output.tf_type = message.Int();
    if (message.field() == 4) output.type_attr = message.View();
    if (message.field() == 5) output.number_attr = message.View();
    if (message.field() == 6) output.type_list_attr = message.View();
  }
  return output;
}

}  // namespace

Bytes TfOpDef::FindDefault(std::string_view attr) const {
  for (const Default& d : defaults) {
    if (d.attr == attr) return d.value;
  }
  return {};
}

TfOpDef TfOpDefs::ParseOpDef(Bytes op_def, Bytes* name) {
  TfOpDef def;
  WireMessage message(op_def);
  while (message.Next()) {
    if (message.field() == 1) *name = message.View();
    if (message.field() == 3) def.outputs.push_back(ParseOutput(message.View()));
    if (message.field() != 4 || !message.is_view()) continue;
    TfOpDef::Default item;
    WireMessage attr(message.View());
    while (attr.Next()) {
      if (attr.field() == 1) item.attr = attr.View();
      if (attr.field() == 3) item.value = attr.View();
    }
    if (!item.value.empty()) def.defaults.push_back(item);
  }
  return def;
}

void TfOpDefs::AddOpList(Bytes op_list) {
  WireMessage message(op_list);
  while (message.Next()) {
    if (message.field() != 1) continue;
    Bytes name;
    TfOpDef def = ParseOpDef(message.View(), &name);
    from_file_.insert_or_assign(name, std::move(def));
  }
}

const TfOpDef* TfOpDefs::Find(std::string_view op) const {
  const auto it = from_file_.find(op);
  return it != from_file_.end() ? &it->second : FindBuiltIn(op);
}

Bytes TfOpDefs::FindDefault(std::string_view op, std::string_view attr) const {
  if (const auto it = from_file_.find(op); it != from_file_.end()) {
    if (const Bytes value = it->second.FindDefault(attr); !value.empty()) return value;
  }
  const TfOpDef* built_in = FindBuiltIn(op);
  return built_in == nullptr ? Bytes() : built_in->FindDefault(attr);
}

}  // namespace oncilla
