// What reduced precision costs in accuracy, for C++17: oncilla_precision.h with classes.
//
//   auto check = oncilla::PrecisionCheck::Run(runtime, "net", {{"x", x}}, {"fp16"}).value();
//   std::printf("%s", check.text.c_str());
#ifndef ONCILLA_PRECISION_HPP_
#define ONCILLA_PRECISION_HPP_

#include <oncilla/oncilla_precision.h>

#include <oncilla/oncilla.hpp>
#include <string>
#include <vector>

namespace oncilla {
inline namespace v0 {

struct PrecisionOptions {
  std::string storage;          // "fp16" or "bf16"; empty: what session.config says
  SessionOptions session = {};  // opencl_cpu_devices has no effect here
  LoadOptions load = {};
  RunOptions run = {};
  // The most intermediate values to compare as well, at the cost of one more run each. Set it to
  // find the nodes where errors grow.
  int inner_values = 0;
};

// How far one output, or one intermediate value, is from its value in fp32; oncilla_number_errors
// has the units.
struct NumberErrors {
  std::string name;
  double largest = 0, max_error = 0, rms_error = 0;
  double relative_error = 0;   // 0.01 is one percent
  double top1_agreement = -1;  // 0 to 1, or negative
  int64_t overflowed = 0, others_that_differ = 0;
};

struct PrecisionCheck {
  std::vector<NumberErrors> outputs;
  std::vector<NumberErrors> inner;  // intermediate values, in the order of the graph
  std::string text;                 // all results as a table

  // Loads the model with and without 16-bit storage, runs both on the inputs, and compares the
  // results.
  static Result<PrecisionCheck> Run(const Runtime& runtime, const std::string& path,
                                    const Model::Inputs& inputs, const PrecisionOptions& options);

 private:
  using Read = oncilla_status* (*)(const oncilla_precision_check*, size_t, oncilla_number_errors*);
  static Status ReadAll(const oncilla_precision_check* check, size_t count, Read read,
                        std::vector<NumberErrors>& into) {
    for (size_t i = 0; i < count; ++i) {
      oncilla_number_errors e{};
      e.size = sizeof(e);
      Status status(read(check, i, &e));
      if (!status.ok()) return status;
      into.push_back({e.name, e.largest, e.max_error, e.rms_error, e.relative_error,
                      e.top1_agreement, e.overflowed, e.others_that_differ});
    }
    return Status();
  }
};

inline Result<PrecisionCheck> PrecisionCheck::Run(const Runtime& runtime, const std::string& path,
                                                  const Model::Inputs& inputs,
                                                  const PrecisionOptions& options) {
  const Model::Arguments a(inputs, options.run);
  const oncilla_session_options session = internal::ToC(options.session);
  const internal::CLoadOptions load(options.load);
  oncilla_precision_options o{};
  o.size = sizeof(o);
  o.storage = options.storage.empty() ? nullptr : options.storage.c_str();
  o.session = &session;
  o.load = &load.c;
  o.run = &a.c;
  o.inner_values = options.inner_values;
  oncilla_precision_check* made = nullptr;
  Status status(oncilla_precision_check_run(runtime.get(), path.c_str(), a.names.data(),
                                            a.tensors.data(), a.names.size(), &o, &made));
  if (!status.ok()) return status;
  const internal::Handle<oncilla_precision_check, oncilla_precision_check_free> owned(made);
  PrecisionCheck check;
  status = ReadAll(made, oncilla_precision_check_output_count(made), oncilla_precision_check_output,
                   check.outputs);
  if (!status.ok()) return status;
  status = ReadAll(made, oncilla_precision_check_inner_count(made), oncilla_precision_check_inner,
                   check.inner);
  if (!status.ok()) return status;
  check.text = oncilla_precision_check_text(made);
  return check;
}

}  // namespace v0
}  // namespace oncilla

#endif  // ONCILLA_PRECISION_HPP_
