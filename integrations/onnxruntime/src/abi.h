// The part of ONNX Runtime's plugin interface that the provider uses, declared here because no
// package of Debian or PyPI has its headers.
//
// ONNX Runtime guarantees that a function keeps its position in a table, and that tables and
// structs only grow at their end. So a function is identified by its slot; the slots are those of
// onnxruntime_c_api.h (OrtApi) and onnxruntime_ep_c_api.h (OrtEpApi, OrtEp, OrtEpFactory,
// OrtNodeComputeInfo) of versions 1.24 to 1.31. If ORT_INCLUDE_DIR is given, abi_check.cc compares
// them with the headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oncilla::ort {

// The oldest interface with all functions that are used, that of ONNX Runtime 1.24.
inline constexpr uint32_t kApiVersion = 24;
// The version that our structs declare: 1.23 has all the members that are set here, and newer
// versions of ONNX Runtime then ignore later members.
inline constexpr uint32_t kStructVersion = 23;

// Opaque, as in the headers.
struct OrtStatus;
struct OrtValue;
struct OrtTypeInfo;
struct OrtTensorInfo;
struct OrtKernelContext;
struct OrtSessionOptions;
struct OrtLogger;
struct OrtValueInfo;
struct OrtOpAttr;
struct OrtNode;
struct OrtGraph;
struct OrtKeyValuePairs;
struct OrtHardwareDevice;
struct OrtEpDevice;
struct OrtSupportInfo;     // OrtEpGraphSupportInfo
struct OrtComputeContext;  // OrtNodeComputeContext
struct OrtEpFactory;

enum OrtErrorCode {
  kOrtFail = 1,
  kOrtInvalidArgument = 2,
  kOrtNoSuchFile = 3,
  kOrtInvalidProtobuf = 7,
  kOrtNotImplemented = 9,
  kOrtEpFail = 11
};
enum OrtLogLevel { kOrtVerbose = 0, kOrtInfo = 1, kOrtWarning = 2, kOrtError = 3 };
enum OrtOnnxType { kOrtTensor = 1 };
enum OrtDeviceType { kOrtCpu = 0, kOrtGpu = 1 };
// Numbers of element types are those of TensorProto.DataType up to 22 (int4).
inline constexpr int kOrtString = 8;
inline constexpr int kOrtLastElementType = 22;
enum OrtAttrType {
  kOrtAttrGraph = 7,
  kOrtAttrInt = 1,
  kOrtAttrInts = 2,
  kOrtAttrFloat = 3,
  kOrtAttrFloats = 4,
  kOrtAttrString = 5,
  kOrtAttrStrings = 6,
  kOrtAttrTensor = 8
};

struct OrtApiBase {
  const void* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)();
};

// X(name, slot, result, (parameters)) for each function of OrtApi.
#define ONCILLA_ORT_API(X)                                                                         \
  X(CreateStatus, 0, OrtStatus*, (int code, const char* message))                                  \
  X(GetErrorMessage, 2, const char*, (const OrtStatus*))                                           \
  X(GetTensorMutableData, 51, OrtStatus*, (OrtValue*, void** data))                                \
  X(FillStringTensor, 52, OrtStatus*, (OrtValue*, const char* const* strings, size_t count))       \
  X(GetStringTensorDataLength, 53, OrtStatus*, (const OrtValue*, size_t* bytes))                   \
  X(GetStringTensorContent, 54, OrtStatus*,                                                        \
    (const OrtValue*, void* bytes, size_t size, size_t* offsets, size_t count))                    \
  X(CastTypeInfoToTensorInfo, 55, OrtStatus*, (const OrtTypeInfo*, const OrtTensorInfo**))         \
  X(GetOnnxTypeFromTypeInfo, 56, OrtStatus*, (const OrtTypeInfo*, int* type))                      \
  X(GetTensorElementType, 60, OrtStatus*, (const OrtTensorInfo*, int* type))                       \
  X(GetDimensionsCount, 61, OrtStatus*, (const OrtTensorInfo*, size_t* rank))                      \
  X(GetDimensions, 62, OrtStatus*, (const OrtTensorInfo*, int64_t* dims, size_t rank))             \
  X(GetSymbolicDimensions, 63, OrtStatus*, (const OrtTensorInfo*, const char** names, size_t))     \
  X(GetTensorTypeAndShape, 65, OrtStatus*, (const OrtValue*, OrtTensorInfo**))                     \
  X(KernelContext_GetInput, 90, OrtStatus*,                                                        \
    (const OrtKernelContext*, size_t index, const OrtValue** value))                               \
  X(KernelContext_GetOutput, 91, OrtStatus*,                                                       \
    (OrtKernelContext*, size_t index, const int64_t* dims, size_t rank, OrtValue** value))         \
  X(ReleaseStatus, 93, void, (OrtStatus*))                                                         \
  X(ReleaseValue, 96, void, (OrtValue*))                                                           \
  X(ReleaseTensorTypeAndShapeInfo, 99, void, (OrtTensorInfo*))                                     \
  X(Logger_LogMessage, 247, OrtStatus*,                                                            \
    (const OrtLogger*, int level, const char* message, const char* file, int line,                 \
     const char* function))                                                                        \
  X(Logger_GetLoggingSeverityLevel, 248, OrtStatus*, (const OrtLogger*, int* level))               \
  X(ReadOpAttr, 272, OrtStatus*, (const OrtOpAttr*, int type, void* data, size_t, size_t* needed)) \
  X(GetValueInfoName, 289, OrtStatus*, (const OrtValueInfo*, const char** name))                   \
  X(GetValueInfoTypeInfo, 290, OrtStatus*, (const OrtValueInfo*, const OrtTypeInfo**))             \
  X(CreateKeyValuePairs, 295, void, (OrtKeyValuePairs**))                                          \
  X(AddKeyValuePair, 296, void, (OrtKeyValuePairs*, const char* key, const char* value))           \
  X(GetKeyValue, 297, const char*, (const OrtKeyValuePairs*, const char* key))                     \
  X(GetKeyValuePairs, 298, void,                                                                   \
    (const OrtKeyValuePairs*, const char* const** keys, const char* const** values, size_t*))      \
  X(ReleaseKeyValuePairs, 300, void, (OrtKeyValuePairs*))                                          \
  X(HardwareDevice_Type, 307, int, (const OrtHardwareDevice*))                                     \
  X(HardwareDevice_VendorId, 308, uint32_t, (const OrtHardwareDevice*))                            \
  X(GetEpApi, 317, const void*, ())                                                                \
  X(GetTensorSizeInBytes, 318, OrtStatus*, (const OrtValue*, size_t* bytes))                       \
  X(ValueInfo_GetInitializerValue, 326, OrtStatus*, (const OrtValueInfo*, const OrtValue**))       \
  X(ValueInfo_IsConstantInitializer, 331, OrtStatus*, (const OrtValueInfo*, bool*))                \
  X(Graph_GetName, 333, OrtStatus*, (const OrtGraph*, const char** name))                          \
  X(Graph_GetNumOperatorSets, 336, OrtStatus*, (const OrtGraph*, size_t*))                         \
  X(Graph_GetOperatorSets, 337, OrtStatus*,                                                        \
    (const OrtGraph*, const char** domains, int64_t* versions, size_t))                            \
  X(Graph_GetNumInputs, 338, OrtStatus*, (const OrtGraph*, size_t*))                               \
  X(Graph_GetInputs, 339, OrtStatus*, (const OrtGraph*, const OrtValueInfo**, size_t))             \
  X(Graph_GetNumOutputs, 340, OrtStatus*, (const OrtGraph*, size_t*))                              \
  X(Graph_GetOutputs, 341, OrtStatus*, (const OrtGraph*, const OrtValueInfo**, size_t))            \
  X(Graph_GetNumNodes, 344, OrtStatus*, (const OrtGraph*, size_t*))                                \
  X(Graph_GetNodes, 345, OrtStatus*, (const OrtGraph*, const OrtNode**, size_t))                   \
  X(Graph_GetParentNode, 346, OrtStatus*, (const OrtGraph*, const OrtNode**))                      \
  X(Node_GetName, 349, OrtStatus*, (const OrtNode*, const char**))                                 \
  X(Node_GetOperatorType, 350, OrtStatus*, (const OrtNode*, const char**))                         \
  X(Node_GetDomain, 351, OrtStatus*, (const OrtNode*, const char**))                               \
  X(Node_GetNumInputs, 353, OrtStatus*, (const OrtNode*, size_t*))                                 \
  X(Node_GetInputs, 354, OrtStatus*, (const OrtNode*, const OrtValueInfo**, size_t))               \
  X(Node_GetNumOutputs, 355, OrtStatus*, (const OrtNode*, size_t*))                                \
  X(Node_GetOutputs, 356, OrtStatus*, (const OrtNode*, const OrtValueInfo**, size_t))              \
  X(Node_GetNumImplicitInputs, 357, OrtStatus*, (const OrtNode*, size_t*))                         \
  X(Node_GetImplicitInputs, 358, OrtStatus*, (const OrtNode*, const OrtValueInfo**, size_t))       \
  X(Node_GetNumAttributes, 359, OrtStatus*, (const OrtNode*, size_t*))                             \
  X(Node_GetAttributes, 360, OrtStatus*, (const OrtNode*, const OrtOpAttr**, size_t))              \
  X(OpAttr_GetTensorAttributeAsOrtValue, 362, OrtStatus*, (const OrtOpAttr*, OrtValue**))          \
  X(OpAttr_GetType, 363, OrtStatus*, (const OrtOpAttr*, int* type))                                \
  X(OpAttr_GetName, 364, OrtStatus*, (const OrtOpAttr*, const char**))                             \
  X(Node_GetNumSubgraphs, 365, OrtStatus*, (const OrtNode*, size_t*))                              \
  X(Node_GetSubgraphs, 366, OrtStatus*,                                                            \
    (const OrtNode*, const OrtGraph**, size_t, const char** attrs))                                \
  X(GetTensorData, 378, OrtStatus*, (const OrtValue*, const void** data))                          \
  X(GetSessionOptionsConfigEntries, 379, OrtStatus*,                                               \
    (const OrtSessionOptions*, OrtKeyValuePairs**))                                                \
  X(TensorTypeAndShape_HasShape, 390, bool, (const OrtTensorInfo*))

struct OrtNodeFusionOptions {
  uint32_t version;
  bool drop_constant_initializers;
};

// The same for OrtEpApi.
#define ONCILLA_ORT_EP_API(X)                                                                  \
  X(CreateEpDevice, 0, OrtStatus*,                                                             \
    (OrtEpFactory*, const OrtHardwareDevice*, const OrtKeyValuePairs* metadata,                \
     const OrtKeyValuePairs* options, OrtEpDevice**))                                          \
  X(ReleaseEpDevice, 1, void, (OrtEpDevice*))                                                  \
  X(EpGraphSupportInfo_AddNodesToFuse, 2, OrtStatus*,                                          \
    (OrtSupportInfo*, const OrtNode* const* nodes, size_t count, const OrtNodeFusionOptions*)) \
  X(CreateHardwareDevice, 16, OrtStatus*,                                                      \
    (int type, uint32_t vendor_id, uint32_t device_id, const char* vendor,                     \
     const OrtKeyValuePairs* metadata, OrtHardwareDevice**))                                   \
  X(ReleaseHardwareDevice, 17, void, (OrtHardwareDevice*))

// Both tables as members; `api` and `ep_api` are the ones that ONNX Runtime returned.
struct Functions {
#define ONCILLA_ORT_MEMBER(name, slot, result, parameters) result(*name) parameters = nullptr;
  ONCILLA_ORT_API(ONCILLA_ORT_MEMBER)
  ONCILLA_ORT_EP_API(ONCILLA_ORT_MEMBER)
#undef ONCILLA_ORT_MEMBER
  void Fill(const void* api) {
    const auto* slots = static_cast<void* const*>(api);
#define ONCILLA_ORT_FILL(name, slot, result, parameters) \
  name = reinterpret_cast<decltype(name)>(slots[slot]);
    ONCILLA_ORT_API(ONCILLA_ORT_FILL)
    slots = static_cast<void* const*>(GetEpApi());
    ONCILLA_ORT_EP_API(ONCILLA_ORT_FILL)
#undef ONCILLA_ORT_FILL
  }
};

// ---- The structs that a provider fills in. Their order is part of the interface. ----

struct OrtNodeComputeInfo {
  uint32_t version;
  OrtStatus* (*CreateState)(OrtNodeComputeInfo*, OrtComputeContext*, void** state);
  OrtStatus* (*Compute)(OrtNodeComputeInfo*, void* state, OrtKernelContext*);
  void (*ReleaseState)(OrtNodeComputeInfo*, void* state);
};

struct OrtEp {
  uint32_t version;
  const char* (*GetName)(const OrtEp*);
  OrtStatus* (*GetCapability)(OrtEp*, const OrtGraph*, OrtSupportInfo*);
  OrtStatus* (*Compile)(OrtEp*, const OrtGraph** graphs, const OrtNode** fused, size_t count,
                        OrtNodeComputeInfo** infos, OrtNode** context_nodes);
  void (*ReleaseNodeComputeInfos)(OrtEp*, OrtNodeComputeInfo** infos, size_t count);
  // Optional, all null here: GetPreferredDataLayout, ShouldConvertDataLayoutForOp,
  // SetDynamicOptions, OnRunStart, OnRunEnd, CreateAllocator, CreateSyncStreamForDevice,
  // GetCompiledModelCompatibilityInfo. ONNX Runtime looks no further at version 23; the last
  // member and the ones behind it are room for versions that look all the same.
  void* optional[24];
};

struct OrtEpFactory {
  uint32_t version;
  const char* (*GetName)(const OrtEpFactory*);
  const char* (*GetVendor)(const OrtEpFactory*);
  OrtStatus* (*GetSupportedDevices)(OrtEpFactory*, const OrtHardwareDevice* const* devices,
                                    size_t count, OrtEpDevice** ep_devices, size_t room,
                                    size_t* written);
  OrtStatus* (*CreateEp)(OrtEpFactory*, const OrtHardwareDevice* const* devices,
                         const OrtKeyValuePairs* const* metadata, size_t count,
                         const OrtSessionOptions*, const OrtLogger*, OrtEp**);
  void (*ReleaseEp)(OrtEpFactory*, OrtEp*);
  uint32_t (*GetVendorId)(const OrtEpFactory*);
  const char* (*GetVersion)(const OrtEpFactory*);
  OrtStatus* (*ValidateCompiledModel)(OrtEpFactory*, const OrtHardwareDevice* const* devices,
                                      size_t count, const char* info, int* compatibility);
  OrtStatus* (*CreateAllocator)(OrtEpFactory*, const void* memory_info, const OrtKeyValuePairs*,
                                void** allocator);
  void (*ReleaseAllocator)(OrtEpFactory*, void* allocator);
  OrtStatus* (*CreateDataTransfer)(OrtEpFactory*, void** transfer);
  bool (*IsStreamAware)(const OrtEpFactory*);
  OrtStatus* (*CreateSyncStream)(OrtEpFactory*, const void* memory_device, const OrtKeyValuePairs*,
                                 void** stream);
  void* optional[16];
};

}  // namespace oncilla::ort
