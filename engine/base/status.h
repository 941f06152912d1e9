// Status and Result: how every fallible function of the engine reports failure.
//
// Both are Abseil's types under our names. Code of the engine returns failures and does not throw
// them, except for WorkRefused (work_limits.h). A message reads from the outside in: "node 'probs'
// (Softmax): axis 5 is out of range for rank 2". Facts that a program may branch on (stage, node,
// device, driver code) are attached to the status as details.
#pragma once

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace oncilla {

using Code = absl::StatusCode;
using Status = absl::Status;
template <class T>
using Result = absl::StatusOr<T>;

// The stage at which a failure happened. The program derives its exit code from (stage, code).
enum class Stage { kUnknown, kOptions, kFile, kLoad, kCompile, kRun, kDevice };
std::string_view Name(Stage stage);

namespace internal {
// A reference to any value that can be streamed, without its type: a call of StrCat then costs an
// array of these and one call, instead of its own copy of the streaming code.
class Piece {
 public:
  Piece(const char* text) : value_(text), print_(&PrintText) {}  // NOLINT: what StrCat is made of
  template <class T>
  Piece(const T& value) : value_(&value), print_(&Print<T>) {}  // NOLINT: likewise
  void PrintTo(std::ostream& out) const { print_(out, value_); }

 private:
  static void PrintText(std::ostream& out, const void* value);
  template <class T>
  static void Print(std::ostream& out, const void* value) {
    out << *static_cast<const T*>(value);
  }
  const void* value_;
  void (*print_)(std::ostream&, const void*);
};
std::string Concatenate(const Piece* pieces, size_t count);
Status ErrorOf(Code code, const Piece* pieces, size_t count);
}  // namespace internal

// Concatenates anything that can be streamed.
template <class... Parts>
std::string StrCat(const Parts&... parts) {
  const internal::Piece pieces[] = {internal::Piece(parts)..., internal::Piece("")};
  return internal::Concatenate(pieces, sizeof...(parts));
}

template <class... Parts>
Status Error(Code code, const Parts&... parts) {
  const internal::Piece pieces[] = {internal::Piece(parts)..., internal::Piece("")};
  return internal::ErrorOf(code, pieces, sizeof...(parts));
}
template <class... Parts>
Status InvalidArgument(const Parts&... parts) {
  return Error(Code::kInvalidArgument, parts...);
}
template <class... Parts>
Status NotFound(const Parts&... parts) {
  return Error(Code::kNotFound, parts...);
}
template <class... Parts>
Status Unsupported(const Parts&... parts) {
  return Error(Code::kUnimplemented, parts...);
}
template <class... Parts>
Status DataLoss(const Parts&... parts) {
  return Error(Code::kDataLoss, parts...);
}
template <class... Parts>
Status Exhausted(const Parts&... parts) {
  return Error(Code::kResourceExhausted, parts...);
}
template <class... Parts>
Status Internal(const Parts&... parts) {
  return Error(Code::kInternal, parts...);
}

// Facts about a failure beside its text. Empty fields are unknown.
struct StatusDetails {
  Stage stage = Stage::kUnknown;
  std::string node;    // name in the source model
  std::string device;  // full device name
  std::optional<int32_t> driver_code;
};
StatusDetails Details(const Status& status);

// Each returns the same failure with one more detail. A detail that is already set stays, because
// the innermost caller knows best. No effect on success.
Status WithStage(Status status, Stage stage);
Status WithNode(Status status, std::string_view node);
Status WithDevice(Status status, std::string_view device);
Status WithDriverCode(Status status, int32_t code);

// Prefixes the message with the location of the failure ("node 'a' (Conv)"), keeping code and
// details. No effect on success.
Status In(Status status, std::string_view where);

inline std::string Message(const Status& status) {
  return std::string(status.message().data(), status.message().size());
}

#define ONCILLA_CONCAT_(a, b) a##b
#define ONCILLA_CONCAT(a, b) ONCILLA_CONCAT_(a, b)

// Returns from the calling function when `expr` is a failed Status.
#define ONCILLA_TRY(expr)                                                                          \
  do {                                                                                             \
    if (::oncilla::Status oncilla_status_ = (expr); !oncilla_status_.ok()) return oncilla_status_; \
  } while (0)

// ONCILLA_ASSIGN(auto x, F()): declares or assigns x from a Result, or returns its failure.
#define ONCILLA_ASSIGN(decl, expr) \
  ONCILLA_ASSIGN_(ONCILLA_CONCAT(oncilla_result_, __LINE__), decl, expr)
#define ONCILLA_ASSIGN_(result, decl, expr) \
  auto result = (expr);                     \
  if (!result.ok()) return result.status(); \
  decl = std::move(*result)

}  // namespace oncilla
