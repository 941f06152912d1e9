// The cost of 16-bit storage: runs a model in both precisions and compares the results.
#include <nanobind/stl/string.h>
#include <oncilla/oncilla_precision.h>

#include "python/src/deferred.h"
#include "python/src/requests.h"

namespace oncilla_python {
namespace {

nb::dict ErrorsOf(const oncilla_number_errors& e) {
  nb::dict d;
  d["largest"] = e.largest;
  d["max_error"] = e.max_error;
  d["rms_error"] = e.rms_error;
  d["relative_error"] = e.relative_error;
  d["top1_agreement"] = e.top1_agreement;
  d["overflowed"] = e.overflowed;
  d["others_that_differ"] = e.others_that_differ;
  return d;
}

template <class Get>
nb::dict All(const oncilla_precision_check* check, size_t count, Get&& get) {
  nb::dict all;
  for (size_t i = 0; i < count; ++i) {
    oncilla_number_errors errors{};
    errors.size = sizeof(errors);
    Check(get(check, i, &errors));
    all[errors.name] = ErrorsOf(errors);
  }
  return all;
}

nb::tuple CheckPrecision(const Runtime& runtime, nb::bytes path, nb::dict inputs,
                         const std::string& storage, const std::string& device, int inner_values,
                         nb::handle convert) {
  std::vector<Feed> feeds;
  std::vector<const char*> names;
  std::vector<const oncilla_tensor*> tensors;
  for (const auto [name, value] : inputs) {
    names.push_back(TextOf(name));
    feeds.push_back(ToFeed(value, convert, name));
    tensors.push_back(feeds.back().tensor);
  }
  oncilla_session_options session{};
  session.size = sizeof(session);
  session.device = device == "auto" ? nullptr : device.c_str();
  oncilla_precision_options options{};
  options.size = sizeof(options);
  options.storage = storage.c_str();
  options.session = &session;
  options.inner_values = inner_values;
  oncilla_precision_check* made = nullptr;
  Unlocked([&] {
    return oncilla_precision_check_run(runtime.handle.get(), path.c_str(), names.data(),
                                       tensors.data(), names.size(), &options, &made);
  });
  const Handle<oncilla_precision_check, oncilla_precision_check_free> check(made);
  return nb::make_tuple(
      oncilla_precision_check_text(made),
      All(made, oncilla_precision_check_output_count(made), oncilla_precision_check_output),
      All(made, oncilla_precision_check_inner_count(made), oncilla_precision_check_inner));
}

}  // namespace

void DefinePrecision(nb::module_& m) { m.def("_check_precision", &CheckPrecision); }

}  // namespace oncilla_python
