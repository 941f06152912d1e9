// Every call of OpenCL that the backend makes, by its name without "cl"; all of them exist in any
// OpenCL 1.2 driver.
#pragma once

#define ONCILLA_CL_CALLS(X)     \
  X(GetPlatformIDs)             \
  X(GetPlatformInfo)            \
  X(GetDeviceIDs)               \
  X(GetDeviceInfo)              \
  X(CreateContext)              \
  X(RetainContext)              \
  X(GetContextInfo)             \
  X(ReleaseContext)             \
  X(CreateCommandQueue)         \
  X(RetainCommandQueue)         \
  X(GetCommandQueueInfo)        \
  X(ReleaseCommandQueue)        \
  X(CreateBuffer)               \
  X(CreateSubBuffer)            \
  X(RetainMemObject)            \
  X(GetMemObjectInfo)           \
  X(ReleaseMemObject)           \
  X(CreateProgramWithSource)    \
  X(CreateProgramWithBinary)    \
  X(BuildProgram)               \
  X(GetProgramInfo)             \
  X(GetProgramBuildInfo)        \
  X(ReleaseProgram)             \
  X(CreateKernel)               \
  X(SetKernelArg)               \
  X(GetKernelWorkGroupInfo)     \
  X(ReleaseKernel)              \
  X(EnqueueNDRangeKernel)       \
  X(EnqueueReadBuffer)          \
  X(EnqueueWriteBuffer)         \
  X(EnqueueCopyBuffer)          \
  X(EnqueueFillBuffer)          \
  X(EnqueueMigrateMemObjects)   \
  X(EnqueueMarkerWithWaitList)  \
  X(EnqueueBarrierWithWaitList) \
  X(Flush)                      \
  X(Finish)                     \
  X(WaitForEvents)              \
  X(GetEventInfo)               \
  X(GetEventProfilingInfo)      \
  X(RetainEvent)                \
  X(SetEventCallback)           \
  X(ReleaseEvent)
