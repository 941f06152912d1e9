// Compares the slots and structs of abi.h with ONNX Runtime's headers, if the build has them. The
// file is only compiled; nothing of it runs.
#include <onnxruntime_c_api.h>

#include <cstddef>

#include "integrations/onnxruntime/src/abi.h"

namespace {

#define ONCILLA_ORT_CHECK(name, slot, result, parameters)         \
  static_assert(offsetof(OrtApi, name) == (slot) * sizeof(void*), \
                "OrtApi has " #name " in another slot than abi.h");
ONCILLA_ORT_API(ONCILLA_ORT_CHECK)
#undef ONCILLA_ORT_CHECK

#define ONCILLA_ORT_CHECK(name, slot, result, parameters)           \
  static_assert(offsetof(OrtEpApi, name) == (slot) * sizeof(void*), \
                "OrtEpApi has " #name " in another slot than abi.h");
ONCILLA_ORT_EP_API(ONCILLA_ORT_CHECK)
#undef ONCILLA_ORT_CHECK

#define ONCILLA_ORT_SAME(type, ours, theirs)                                    \
  static_assert(offsetof(oncilla::ort::type, ours) == offsetof(::type, theirs), \
                #type " has " #theirs " in another place than abi.h");
ONCILLA_ORT_SAME(OrtNodeComputeInfo, Compute, Compute)
ONCILLA_ORT_SAME(OrtNodeComputeInfo, ReleaseState, ReleaseState)
ONCILLA_ORT_SAME(OrtNodeFusionOptions, drop_constant_initializers, drop_constant_initializers)
ONCILLA_ORT_SAME(OrtEp, GetName, GetName)
ONCILLA_ORT_SAME(OrtEp, GetCapability, GetCapability)
ONCILLA_ORT_SAME(OrtEp, Compile, Compile)
ONCILLA_ORT_SAME(OrtEp, ReleaseNodeComputeInfos, ReleaseNodeComputeInfos)
ONCILLA_ORT_SAME(OrtEp, optional, GetPreferredDataLayout)
static_assert(sizeof(oncilla::ort::OrtEp) >= sizeof(::OrtEp), "OrtEp has more members");
ONCILLA_ORT_SAME(OrtEpFactory, GetSupportedDevices, GetSupportedDevices)
ONCILLA_ORT_SAME(OrtEpFactory, CreateEp, CreateEp)
ONCILLA_ORT_SAME(OrtEpFactory, ReleaseEp, ReleaseEp)
ONCILLA_ORT_SAME(OrtEpFactory, GetVendorId, GetVendorId)
ONCILLA_ORT_SAME(OrtEpFactory, GetVersion, GetVersion)
ONCILLA_ORT_SAME(OrtEpFactory, ValidateCompiledModel, ValidateCompiledModelCompatibilityInfo)
ONCILLA_ORT_SAME(OrtEpFactory, CreateAllocator, CreateAllocator)
ONCILLA_ORT_SAME(OrtEpFactory, ReleaseAllocator, ReleaseAllocator)
ONCILLA_ORT_SAME(OrtEpFactory, CreateDataTransfer, CreateDataTransfer)
ONCILLA_ORT_SAME(OrtEpFactory, IsStreamAware, IsStreamAware)
ONCILLA_ORT_SAME(OrtEpFactory, CreateSyncStream, CreateSyncStreamForDevice)
static_assert(sizeof(oncilla::ort::OrtEpFactory) >= sizeof(::OrtEpFactory),
              "OrtEpFactory has more members");
#undef ONCILLA_ORT_SAME

}  // namespace
