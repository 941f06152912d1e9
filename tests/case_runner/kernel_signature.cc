// Comparing a dispatch with its kernel; see kernel_signature.h.
#include "tests/case_runner/kernel_signature.h"

#include <algorithm>

#include "backends/opencl/runtime/program_cache.h"
#include "tests/case_runner/preprocess.h"

namespace oncilla::testing {
namespace {

using opencl::Arg;

// Parses "const __global float * restrict x" into its type, in a fixed spelling, and its name.
Result<Parameter> ParameterOf(const Tokens& tokens) {
  const auto has = [&](std::string_view word) { return std::ranges::count(tokens, word) > 0; };
  Parameter out;
  if (!tokens.empty()) out.name = tokens.back();
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const std::string& t = tokens[i];
    if (t == "const" || t == "restrict" || t == "volatile" || t == "*" || t == "__global" ||
        t == "__local") {
      continue;
    }
    if (!out.type.empty()) return InvalidArgument("a parameter of type '", out.type, " ", t, "'");
    out.type = t;
  }
  if (out.type.empty()) return InvalidArgument("a parameter '", out.name, "' without a type");
  if (has("*")) {
    out.type = StrCat(has("__local")    ? "__local "
                      : has("__global") ? "__global "
                                        : "",
                      has("const") ? "const " : "", out.type, "*");
  }
  return out;
}

// The parameter that an argument requires; the element type of buffers is not compared.
struct KindPrinter {
  std::string operator()(opencl::In) { return "__global const *"; }
  std::string operator()(opencl::Out) { return "__global *"; }
  std::string operator()(opencl::Scratch) { return "__global"; }
  std::string operator()(opencl::Offset) { return "long"; }
  std::string operator()(opencl::Local) { return "__local"; }
  std::string operator()(opencl::ErrorWord) { return "__global int*"; }
  std::string operator()(int32_t) { return "int"; }
  std::string operator()(uint32_t) { return "uint"; }
  std::string operator()(int64_t) { return "long"; }
  std::string operator()(uint64_t) { return "ulong"; }
  std::string operator()(float) { return "float"; }
};

bool Takes(const Parameter& parameter, const std::string& kind) {
  if (kind == "__global const *") return parameter.type.starts_with("__global const ");
  if (kind == "__global *") {
    return parameter.type.starts_with("__global ") &&
           !parameter.type.starts_with("__global const ");
  }
  if (kind == "__global" || kind == "__local") return parameter.type.starts_with(kind + " ");
  return parameter.type == kind;
}

}  // namespace

Result<std::vector<Parameter>> ParametersOf(const std::string& program, const std::string& entry) {
  Preprocessor preprocessor;
  ONCILLA_TRY(preprocessor.Read(program));
  const Tokens& all = preprocessor.tokens;
  size_t at = 0;
  while (at + 2 < all.size() && (all[at] != "void" || all[at + 1] != entry)) ++at;
  if (at + 2 >= all.size()) return InvalidArgument("there is no kernel ", entry);
  Tokens list;
  int depth = 1;
  for (at += 3; at < all.size(); ++at) {
    depth += all[at] == "(" ? 1 : all[at] == ")" ? -1 : 0;
    if (depth == 0) break;
    list.push_back(all[at]);
  }
  list = preprocessor.Expand(list);
  list.emplace_back(",");
  std::vector<Parameter> out;
  Tokens one;
  for (const std::string& token : list) {
    if (token != ",") {
      one.push_back(token);
      continue;
    }
    ONCILLA_ASSIGN(out.emplace_back(), ParameterOf(one));
    one.clear();
  }
  return out;
}

Status CheckSignature(const opencl::Dispatch& d) {
  const std::string where = StrCat(d.source->path, ":", d.entry);
  ONCILLA_ASSIGN(const std::string text, opencl::ProgramText(*d.source, d.generated, d.defines));
  auto parameters = ParametersOf(text, d.entry);
  if (!parameters.ok()) return In(parameters.status(), where);
  if (d.names.size() != d.args.size()) {
    return Internal(where, ": ", d.args.size(), " arguments with ", d.names.size(), " names");
  }
  std::vector<Parameter> given;
  for (size_t i = 0; i < d.args.size(); ++i) {
    given.push_back({std::visit(KindPrinter(), d.args[i]), d.names[i]});
    if (std::holds_alternative<opencl::ErrorWord>(d.args[i])) given.push_back({"int", "run_step"});
  }
  for (size_t i = 0; i < std::max(given.size(), parameters->size()); ++i) {
    if (i >= given.size()) {
      return Internal(where, ": no argument for parameter ", i, ", '", (*parameters)[i].name, "'");
    }
    if (i >= parameters->size()) {
      return Internal(where, ": no parameter for argument ", i, ", '", given[i].name, "'");
    }
    const Parameter& own = (*parameters)[i];
    if (own.name != given[i].name || !Takes(own, given[i].type)) {
      return Internal(where, ": argument ", i, " is '", given[i].type, " ", given[i].name,
                      "', and the kernel's parameter is '", own.type, " ", own.name, "'");
    }
  }
  return Status();
}

}  // namespace oncilla::testing
