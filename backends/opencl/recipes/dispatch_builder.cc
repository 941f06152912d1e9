// The implementation of DispatchBuilder, and helpers for dtypes and shapes that families share.
#include "backends/opencl/recipes/dispatch_builder.h"

#include "backends/opencl/recipes/tuning.h"

namespace oncilla::opencl {

DispatchBuilder& DispatchBuilder::Define(std::string name, std::string value) {
  d_.defines.emplace_back(std::move(name), std::move(value));
  return *this;
}
DispatchBuilder& DispatchBuilder::Define(Named<std::string> defines) {
  d_.defines.insert(d_.defines.end(), defines);
  return *this;
}
DispatchBuilder& DispatchBuilder::Generated(std::string text) {
  d_.generated = std::move(text);
  return *this;
}

DispatchBuilder& DispatchBuilder::Arg(std::string name, const opencl::Arg& value) {
  d_.names.push_back(std::move(name));
  d_.args.push_back(value);
  return *this;
}
DispatchBuilder& DispatchBuilder::Arg(Named<opencl::Arg> args) {
  for (const auto& [name, value] : args) Arg(name, value);
  return *this;
}
DispatchBuilder& DispatchBuilder::Index(std::string name, int64_t value) {
  return Arg(std::move(name), index_(value));
}
DispatchBuilder& DispatchBuilder::Index(Named<int64_t> args) {
  for (const auto& [name, value] : args) Index(name, value);
  return *this;
}
DispatchBuilder& DispatchBuilder::Int(std::string name, int64_t value) {
  return Arg(std::move(name), static_cast<int32_t>(value));
}
DispatchBuilder& DispatchBuilder::Int(Named<int64_t> args) {
  for (const auto& [name, value] : args) Int(name, value);
  return *this;
}
DispatchBuilder& DispatchBuilder::Float(std::string name, double value) {
  return Arg(std::move(name), static_cast<float>(value));
}
DispatchBuilder& DispatchBuilder::Error() { return Arg("run_error", ErrorWord{}); }

DispatchBuilder& DispatchBuilder::Items(int64_t items, int64_t group) {
  return Groups({DivideUp(items, group), 1, 1}, {group, 1, 1});
}
DispatchBuilder& DispatchBuilder::Flat(int64_t items, const Capabilities& caps) {
  return Items(items, caps.Group(TuningOf(caps).flat_group));
}
DispatchBuilder& DispatchBuilder::Groups(std::array<int64_t, 3> groups,
                                         std::array<int64_t, 3> local) {
  for (size_t i = 0; i < 3; ++i) d_.global[i] = groups[i] * local[i];
  d_.local = local;
  return *this;
}
DispatchBuilder& DispatchBuilder::Loop(int64_t trips) {
  d_.longest_loop = trips;
  return *this;
}

char CarrierOf(DType dtype) {
  if (dtype == DType::kF64) return 'd';
  return IsFloat(dtype) ? 'f' : IsSigned(dtype) ? 'l' : 'u';
}
std::string CarrierType(char carrier) {
  return carrier == 'f' ? "float" : carrier == 'd' ? "double" : carrier == 'l' ? "long" : "ulong";
}

Result<AroundAxis> Around(const Shape& shape, int64_t axis) {
  ONCILLA_ASSIGN(const int a, NormalizeAxis(axis, shape.rank()));
  return AroundAxis{shape.Product(0, a), shape[a], shape.Product(a + 1, shape.rank())};
}

}  // namespace oncilla::opencl
