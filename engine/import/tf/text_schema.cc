// The messages of TensorFlow's models in text form, as far as the engine reads them.
#include "engine/import/tf/text_schema.h"

namespace oncilla {
namespace {

using enum FieldKind;

constexpr EnumName kDataType[] = {
    {"DT_INVALID", 0},
    {"DT_FLOAT", 1},
    {"DT_DOUBLE", 2},
    {"DT_INT32", 3},
    {"DT_UINT8", 4},
    {"DT_INT16", 5},
    {"DT_INT8", 6},
    {"DT_STRING", 7},
    {"DT_COMPLEX64", 8},
    {"DT_INT64", 9},
    {"DT_BOOL", 10},
    {"DT_QINT8", 11},
    {"DT_QUINT8", 12},
    {"DT_QINT32", 13},
    {"DT_BFLOAT16", 14},
    {"DT_QINT16", 15},
    {"DT_QUINT16", 16},
    {"DT_UINT16", 17},
    {"DT_COMPLEX128", 18},
    {"DT_HALF", 19},
    {"DT_RESOURCE", 20},
    {"DT_VARIANT", 21},
    {"DT_UINT32", 22},
    {"DT_UINT64", 23},
    {"DT_FLOAT8_E5M2", 24},
    {"DT_FLOAT8_E4M3FN", 25},
    {"DT_FLOAT8_E4M3FNUZ", 26},
    {"DT_FLOAT8_E4M3B11FNUZ", 27},
    {"DT_FLOAT8_E5M2FNUZ", 28},
    {"DT_INT4", 29},
    {"DT_UINT4", 30},
    {"DT_INT2", 31},
    {"DT_UINT2", 32},
    {"DT_FLOAT4_E2M1FN", 33},
    {"DT_FLOAT_REF", 101},
    {"DT_DOUBLE_REF", 102},
    {"DT_INT32_REF", 103},
    {"DT_UINT8_REF", 104},
    {"DT_INT16_REF", 105},
    {"DT_INT8_REF", 106},
    {"DT_STRING_REF", 107},
    {"DT_COMPLEX64_REF", 108},
    {"DT_INT64_REF", 109},
    {"DT_BOOL_REF", 110},
    {"DT_QINT8_REF", 111},
    {"DT_QUINT8_REF", 112},
    {"DT_QINT32_REF", 113},
    {"DT_BFLOAT16_REF", 114},
    {"DT_QINT16_REF", 115},
    {"DT_QUINT16_REF", 116},
    {"DT_UINT16_REF", 117},
    {"DT_COMPLEX128_REF", 118},
    {"DT_HALF_REF", 119},
    {"DT_RESOURCE_REF", 120},
    {"DT_VARIANT_REF", 121},
    {"DT_UINT32_REF", 122},
    {"DT_UINT64_REF", 123},
};

// Fields of TensorFlow that do not matter for inference, or for which the readers refuse a tensor
// by its type.
constexpr std::string_view kNames[] = {"experimental_debug_info", "experimental_type",
                                       "resource_handle_val", "variant_val"};
constexpr std::span<const std::string_view> kSkipped = kNames;

extern const MessageSchema kTensorShapeProtoDim, kTensorShapeProto, kTensorProto, kNameAttrList,
    kAttrValueListValue, kAttrValue, kAttrEntry, kNodeDef, kOpDefArgDef, kOpDefAttrDef, kOpDef,
    kStringEntry, kFunctionDefArgAttrs, kFunctionDefArgAttrEntry, kFunctionDef, kFunctionDefLibrary,
    kVersionDef, kTensorInfo, kSignatureDefInfoEntry, kSignatureDef, kCollectionDefNodeList,
    kCollectionDefBytesList, kCollectionDefInt64List, kCollectionDefFloatList, kCollectionDef,
    kSavedConcreteFunction, kSavedObjectGraphFunctionEntry, kSavedObjectGraph, kMetaGraphDefOpList,
    kMetaGraphDefMetaInfoDef, kMetaGraphDefSaverDef, kMetaGraphDefCollectionEntry,
    kMetaGraphDefSignatureEntry, kMetaGraphDefAssetFileDef, kMetaGraphDef;

constexpr FieldSchema kTensorShapeProtoDimFields[] = {
    {.name = "size", .number = 1, .kind = kInt},
    {.name = "name", .number = 2, .kind = kBytes},
};
const MessageSchema kTensorShapeProtoDim{"TensorShapeProto.Dim", kTensorShapeProtoDimFields,
                                         &kSkipped};

constexpr FieldSchema kTensorShapeProtoFields[] = {
    {.name = "dim",
     .number = 2,
     .kind = kMessage,
     .repeated = true,
     .message = &kTensorShapeProtoDim},
    {.name = "unknown_rank", .number = 3, .kind = kBool},
};
const MessageSchema kTensorShapeProto{"TensorShapeProto", kTensorShapeProtoFields, &kSkipped};

constexpr FieldSchema kTensorProtoFields[] = {
    {.name = "dtype", .number = 1, .kind = kEnum, .names = kDataType},
    {.name = "tensor_shape", .number = 2, .kind = kMessage, .message = &kTensorShapeProto},
    {.name = "version_number", .number = 3, .kind = kInt},
    {.name = "tensor_content", .number = 4, .kind = kBytes},
    {.name = "float_val", .number = 5, .kind = kFloat, .repeated = true},
    {.name = "double_val", .number = 6, .kind = kDouble, .repeated = true},
    {.name = "int_val", .number = 7, .kind = kInt, .repeated = true},
    {.name = "string_val", .number = 8, .kind = kBytes, .repeated = true},
    {.name = "scomplex_val", .number = 9, .kind = kFloat, .repeated = true},
    {.name = "int64_val", .number = 10, .kind = kInt, .repeated = true},
    {.name = "bool_val", .number = 11, .kind = kBool, .repeated = true},
    {.name = "dcomplex_val", .number = 12, .kind = kDouble, .repeated = true},
    {.name = "half_val", .number = 13, .kind = kInt, .repeated = true},
    {.name = "uint32_val", .number = 16, .kind = kUnsigned, .repeated = true},
    {.name = "uint64_val", .number = 17, .kind = kUnsigned, .repeated = true},
    {.name = "float8_val", .number = 18, .kind = kBytes},
};
const MessageSchema kTensorProto{"TensorProto", kTensorProtoFields, &kSkipped};

constexpr FieldSchema kNameAttrListFields[] = {
    {.name = "name", .number = 1, .kind = kBytes},
    {.name = "attr", .number = 2, .kind = kMessage, .repeated = true, .message = &kAttrEntry},
};
const MessageSchema kNameAttrList{"NameAttrList", kNameAttrListFields, &kSkipped};

constexpr FieldSchema kAttrValueListValueFields[] = {
    {.name = "s", .number = 2, .kind = kBytes, .repeated = true},
    {.name = "i", .number = 3, .kind = kInt, .repeated = true},
    {.name = "f", .number = 4, .kind = kFloat, .repeated = true},
    {.name = "b", .number = 5, .kind = kBool, .repeated = true},
    {.name = "type", .number = 6, .kind = kEnum, .repeated = true, .names = kDataType},
    {.name = "shape",
     .number = 7,
     .kind = kMessage,
     .repeated = true,
     .message = &kTensorShapeProto},
    {.name = "tensor", .number = 8, .kind = kMessage, .repeated = true, .message = &kTensorProto},
    {.name = "func", .number = 9, .kind = kMessage, .repeated = true, .message = &kNameAttrList},
};
const MessageSchema kAttrValueListValue{"AttrValue.ListValue", kAttrValueListValueFields,
                                        &kSkipped};

constexpr FieldSchema kAttrValueFields[] = {
    {.name = "list", .number = 1, .kind = kMessage, .message = &kAttrValueListValue, .oneof = 1},
    {.name = "s", .number = 2, .kind = kBytes, .oneof = 1},
    {.name = "i", .number = 3, .kind = kInt, .oneof = 1},
    {.name = "f", .number = 4, .kind = kFloat, .oneof = 1},
    {.name = "b", .number = 5, .kind = kBool, .oneof = 1},
    {.name = "type", .number = 6, .kind = kEnum, .names = kDataType, .oneof = 1},
    {.name = "shape", .number = 7, .kind = kMessage, .message = &kTensorShapeProto, .oneof = 1},
    {.name = "tensor", .number = 8, .kind = kMessage, .message = &kTensorProto, .oneof = 1},
    {.name = "placeholder", .number = 9, .kind = kBytes, .oneof = 1},
    {.name = "func", .number = 10, .kind = kMessage, .message = &kNameAttrList, .oneof = 1},
};
const MessageSchema kAttrValue{"AttrValue", kAttrValueFields, &kSkipped};

constexpr FieldSchema kAttrEntryFields[] = {
    {.name = "key", .number = 1, .kind = kBytes},
    {.name = "value", .number = 2, .kind = kMessage, .message = &kAttrValue},
};
const MessageSchema kAttrEntry{"AttrEntry", kAttrEntryFields, &kSkipped};

constexpr FieldSchema kNodeDefFields[] = {
    {.name = "name", .number = 1, .kind = kBytes},
    {.name = "op", .number = 2, .kind = kBytes},
    {.name = "input", .number = 3, .kind = kBytes, .repeated = true},
    {.name = "device", .number = 4, .kind = kBytes},
    {.name = "attr", .number = 5, .kind = kMessage, .repeated = true, .message = &kAttrEntry},
};
const MessageSchema kNodeDef{"NodeDef", kNodeDefFields, &kSkipped};

constexpr FieldSchema kOpDefArgDefFields[] = {
    {.name = "name", .number = 1, .kind = kBytes},
    {.name = "type", .number = 3, .kind = kEnum, .names = kDataType},
    {.name = "type_attr", .number = 4, .kind = kBytes},
    {.name = "number_attr", .number = 5, .kind = kBytes},
    {.name = "type_list_attr", .number = 6, .kind = kBytes},
    {.name = "is_ref", .number = 16, .kind = kBool},
};
const MessageSchema kOpDefArgDef{"OpDef.ArgDef", kOpDefArgDefFields};

constexpr FieldSchema kOpDefAttrDefFields[] = {
    {.name = "name", .number = 1, .kind = kBytes},
    {.name = "type", .number = 2, .kind = kBytes},
    {.name = "default_value", .number = 3, .kind = kMessage, .message = &kAttrValue},
};
const MessageSchema kOpDefAttrDef{"OpDef.AttrDef", kOpDefAttrDefFields};

constexpr FieldSchema kOpDefFields[] = {
    {.name = "name", .number = 1, .kind = kBytes},
    {.name = "input_arg",
     .number = 2,
     .kind = kMessage,
     .repeated = true,
     .message = &kOpDefArgDef},
    {.name = "output_arg",
     .number = 3,
     .kind = kMessage,
     .repeated = true,
     .message = &kOpDefArgDef},
    {.name = "attr", .number = 4, .kind = kMessage, .repeated = true, .message = &kOpDefAttrDef},
    {.name = "is_stateful", .number = 17, .kind = kBool},
    {.name = "control_output", .number = 20, .kind = kBytes, .repeated = true},
};
const MessageSchema kOpDef{"OpDef", kOpDefFields};

constexpr FieldSchema kStringEntryFields[] = {
    {.name = "key", .number = 1, .kind = kBytes},
    {.name = "value", .number = 2, .kind = kBytes},
};
const MessageSchema kStringEntry{"StringEntry", kStringEntryFields, &kSkipped};

constexpr FieldSchema kFunctionDefArgAttrsFields[] = {
    {.name = "attr", .number = 1, .kind = kMessage, .repeated = true, .message = &kAttrEntry},
};
const MessageSchema kFunctionDefArgAttrs{"FunctionDef.ArgAttrs", kFunctionDefArgAttrsFields};

constexpr FieldSchema kFunctionDefArgAttrEntryFields[] = {
    {.name = "key", .number = 1, .kind = kUnsigned},
    {.name = "value", .number = 2, .kind = kMessage, .message = &kFunctionDefArgAttrs},
};
const MessageSchema kFunctionDefArgAttrEntry{"FunctionDef.ArgAttrEntry",
                                             kFunctionDefArgAttrEntryFields};

constexpr FieldSchema kFunctionDefFields[] = {
    {.name = "signature", .number = 1, .kind = kMessage, .message = &kOpDef},
    {.name = "node_def", .number = 3, .kind = kMessage, .repeated = true, .message = &kNodeDef},
    {.name = "ret", .number = 4, .kind = kMessage, .repeated = true, .message = &kStringEntry},
    {.name = "attr", .number = 5, .kind = kMessage, .repeated = true, .message = &kAttrEntry},
    {.name = "control_ret",
     .number = 6,
     .kind = kMessage,
     .repeated = true,
     .message = &kStringEntry},
    {.name = "arg_attr",
     .number = 7,
     .kind = kMessage,
     .repeated = true,
     .message = &kFunctionDefArgAttrEntry},
};
const MessageSchema kFunctionDef{"FunctionDef", kFunctionDefFields};

constexpr FieldSchema kFunctionDefLibraryFields[] = {
    {.name = "function", .number = 1, .kind = kMessage, .repeated = true, .message = &kFunctionDef},
};
const MessageSchema kFunctionDefLibrary{"FunctionDefLibrary", kFunctionDefLibraryFields};

constexpr FieldSchema kVersionDefFields[] = {
    {.name = "producer", .number = 1, .kind = kInt},
    {.name = "min_consumer", .number = 2, .kind = kInt},
    {.name = "bad_consumers", .number = 3, .kind = kInt, .repeated = true},
};
const MessageSchema kVersionDef{"VersionDef", kVersionDefFields};

constexpr FieldSchema kGraphDefFields[] = {
    {.name = "node", .number = 1, .kind = kMessage, .repeated = true, .message = &kNodeDef},
    {.name = "library", .number = 2, .kind = kMessage, .message = &kFunctionDefLibrary},
    {.name = "version", .number = 3, .kind = kInt},
    {.name = "versions", .number = 4, .kind = kMessage, .message = &kVersionDef},
};

constexpr FieldSchema kTensorInfoFields[] = {
    {.name = "name", .number = 1, .kind = kBytes},
    {.name = "dtype", .number = 2, .kind = kEnum, .names = kDataType},
    {.name = "tensor_shape", .number = 3, .kind = kMessage, .message = &kTensorShapeProto},
};
const MessageSchema kTensorInfo{"TensorInfo", kTensorInfoFields};

constexpr FieldSchema kSignatureDefInfoEntryFields[] = {
    {.name = "key", .number = 1, .kind = kBytes},
    {.name = "value", .number = 2, .kind = kMessage, .message = &kTensorInfo},
};
const MessageSchema kSignatureDefInfoEntry{"SignatureDef.InfoEntry", kSignatureDefInfoEntryFields};

constexpr FieldSchema kSignatureDefFields[] = {
    {.name = "inputs",
     .number = 1,
     .kind = kMessage,
     .repeated = true,
     .message = &kSignatureDefInfoEntry},
    {.name = "outputs",
     .number = 2,
     .kind = kMessage,
     .repeated = true,
     .message = &kSignatureDefInfoEntry},
    {.name = "method_name", .number = 3, .kind = kBytes},
};
const MessageSchema kSignatureDef{"SignatureDef", kSignatureDefFields};

constexpr FieldSchema kCollectionDefNodeListFields[] = {
    {.name = "value", .number = 1, .kind = kBytes, .repeated = true},
};
const MessageSchema kCollectionDefNodeList{"CollectionDef.NodeList", kCollectionDefNodeListFields};

constexpr FieldSchema kCollectionDefBytesListFields[] = {
    {.name = "value", .number = 1, .kind = kBytes, .repeated = true},
};
const MessageSchema kCollectionDefBytesList{"CollectionDef.BytesList",
                                            kCollectionDefBytesListFields};

constexpr FieldSchema kCollectionDefInt64ListFields[] = {
    {.name = "value", .number = 1, .kind = kInt, .repeated = true},
};
const MessageSchema kCollectionDefInt64List{"CollectionDef.Int64List",
                                            kCollectionDefInt64ListFields};

constexpr FieldSchema kCollectionDefFloatListFields[] = {
    {.name = "value", .number = 1, .kind = kFloat, .repeated = true},
};
const MessageSchema kCollectionDefFloatList{"CollectionDef.FloatList",
                                            kCollectionDefFloatListFields};

constexpr FieldSchema kCollectionDefFields[] = {
    {.name = "node_list",
     .number = 1,
     .kind = kMessage,
     .message = &kCollectionDefNodeList,
     .oneof = 1},
    {.name = "bytes_list",
     .number = 2,
     .kind = kMessage,
     .message = &kCollectionDefBytesList,
     .oneof = 1},
    {.name = "int64_list",
     .number = 3,
     .kind = kMessage,
     .message = &kCollectionDefInt64List,
     .oneof = 1},
    {.name = "float_list",
     .number = 4,
     .kind = kMessage,
     .message = &kCollectionDefFloatList,
     .oneof = 1},
};
const MessageSchema kCollectionDef{"CollectionDef", kCollectionDefFields};

constexpr FieldSchema kSavedConcreteFunctionFields[] = {
    {.name = "bound_inputs", .number = 2, .kind = kInt, .repeated = true},
};
const MessageSchema kSavedConcreteFunction{"SavedConcreteFunction", kSavedConcreteFunctionFields};

constexpr FieldSchema kSavedObjectGraphFunctionEntryFields[] = {
    {.name = "key", .number = 1, .kind = kBytes},
    {.name = "value", .number = 2, .kind = kMessage, .message = &kSavedConcreteFunction},
};
const MessageSchema kSavedObjectGraphFunctionEntry{"SavedObjectGraph.FunctionEntry",
                                                   kSavedObjectGraphFunctionEntryFields};

constexpr FieldSchema kSavedObjectGraphFields[] = {
    {.name = "concrete_functions",
     .number = 2,
     .kind = kMessage,
     .repeated = true,
     .message = &kSavedObjectGraphFunctionEntry},
};
const MessageSchema kSavedObjectGraph{"SavedObjectGraph", kSavedObjectGraphFields};

constexpr FieldSchema kMetaGraphDefOpListFields[] = {
    {.name = "op", .number = 1, .kind = kMessage, .repeated = true, .message = &kOpDef},
};
const MessageSchema kMetaGraphDefOpList{"MetaGraphDef.OpList", kMetaGraphDefOpListFields};

constexpr FieldSchema kMetaGraphDefMetaInfoDefFields[] = {
    {.name = "meta_graph_version", .number = 1, .kind = kBytes},
    {.name = "stripped_op_list", .number = 2, .kind = kMessage, .message = &kMetaGraphDefOpList},
    {.name = "tags", .number = 4, .kind = kBytes, .repeated = true},
    {.name = "tensorflow_version", .number = 5, .kind = kBytes},
    {.name = "tensorflow_git_version", .number = 6, .kind = kBytes},
    {.name = "stripped_default_attrs", .number = 7, .kind = kBool},
};
const MessageSchema kMetaGraphDefMetaInfoDef{"MetaGraphDef.MetaInfoDef",
                                             kMetaGraphDefMetaInfoDefFields};

constexpr FieldSchema kMetaGraphDefSaverDefFields[] = {
    {.name = "filename_tensor_name", .number = 1, .kind = kBytes},
    {.name = "save_tensor_name", .number = 2, .kind = kBytes},
    {.name = "restore_op_name", .number = 3, .kind = kBytes},
};
const MessageSchema kMetaGraphDefSaverDef{"MetaGraphDef.SaverDef", kMetaGraphDefSaverDefFields};

constexpr FieldSchema kMetaGraphDefCollectionEntryFields[] = {
    {.name = "key", .number = 1, .kind = kBytes},
    {.name = "value", .number = 2, .kind = kMessage, .message = &kCollectionDef},
};
const MessageSchema kMetaGraphDefCollectionEntry{"MetaGraphDef.CollectionEntry",
                                                 kMetaGraphDefCollectionEntryFields};

constexpr FieldSchema kMetaGraphDefSignatureEntryFields[] = {
    {.name = "key", .number = 1, .kind = kBytes},
    {.name = "value", .number = 2, .kind = kMessage, .message = &kSignatureDef},
};
const MessageSchema kMetaGraphDefSignatureEntry{"MetaGraphDef.SignatureEntry",
                                                kMetaGraphDefSignatureEntryFields};

constexpr FieldSchema kMetaGraphDefAssetFileDefFields[] = {
    {.name = "tensor_info", .number = 1, .kind = kMessage, .message = &kTensorInfo},
    {.name = "filename", .number = 2, .kind = kBytes},
};
const MessageSchema kMetaGraphDefAssetFileDef{"MetaGraphDef.AssetFileDef",
                                              kMetaGraphDefAssetFileDefFields};

constexpr FieldSchema kMetaGraphDefFields[] = {
    {.name = "meta_info_def", .number = 1, .kind = kMessage, .message = &kMetaGraphDefMetaInfoDef},
    {.name = "graph_def", .number = 2, .kind = kMessage, .message = &kGraphDefSchema},
    {.name = "saver_def", .number = 3, .kind = kMessage, .message = &kMetaGraphDefSaverDef},
    {.name = "collection_def",
     .number = 4,
     .kind = kMessage,
     .repeated = true,
     .message = &kMetaGraphDefCollectionEntry},
    {.name = "signature_def",
     .number = 5,
     .kind = kMessage,
     .repeated = true,
     .message = &kMetaGraphDefSignatureEntry},
    {.name = "asset_file_def",
     .number = 6,
     .kind = kMessage,
     .repeated = true,
     .message = &kMetaGraphDefAssetFileDef},
    {.name = "object_graph_def", .number = 7, .kind = kMessage, .message = &kSavedObjectGraph},
};
const MessageSchema kMetaGraphDef{"MetaGraphDef", kMetaGraphDefFields};

constexpr FieldSchema kSavedModelFields[] = {
    {.name = "saved_model_schema_version", .number = 1, .kind = kInt},
    {.name = "meta_graphs",
     .number = 2,
     .kind = kMessage,
     .repeated = true,
     .message = &kMetaGraphDef},
};

}  // namespace

const MessageSchema kGraphDefSchema{"GraphDef", kGraphDefFields};
const MessageSchema kSavedModelSchema{"SavedModel", kSavedModelFields};

}  // namespace oncilla
