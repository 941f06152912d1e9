// Makes one feed for each input of the compiled graph.
#include "tools/oncilla/commands/feeds.h"

#include <algorithm>

#include "engine/run/executor.h"

namespace oncilla::tool {

Result<PlanFeeds> FeedsForPlan(const OpenedModel& opened, const CompiledGraph& compiled,
                               const InputFlags& flags) {
  const Signature& signature = *opened.signature;
  PlanFeeds in;
  const auto open = [&](std::string why) {
    in.open_sizes = std::move(why);
    in.feeds.clear();
    return in;
  };
  ONCILLA_ASSIGN(const auto names, GivenInputs(signature, flags));
  ONCILLA_ASSIGN(const Inputs given, GatherInputs(signature, names, flags));
  for (const NamedValue& input : compiled.graph.inputs()) {
    const Fact& fact = compiled.graph.fact(input.value);
    const auto file =
        std::find_if(given.feeds.begin(), given.feeds.end(),
                     [&](const NamedTensor& feed) { return feed.first == input.name; });
    if (file != given.feeds.end()) {
      in.feeds.push_back(file->second);
      continue;
    }
    if (compiled.fixes_shapes[Index(input.value)]) {
      return open(StrCat("shapes depend on the values of input '", input.name, "' (", fact,
                         "): give them with --input ", input.name, "=FILE"));
    }
    TensorInfo info{input.name, "", fact.dtype, fact.shape};
    if (fact.kind == ValueKind::kList) {
      return open(StrCat("input '", input.name, "' is a list of tensors: give it with --input ",
                         input.name, "=FILE"));
    }
    auto shape = SettledShape(info, flags, signature);
    if (!shape.ok()) {
      // A shape that contradicts the model is the user's mistake; a missing one is not.
      if (!flags.shapes.empty()) return shape.status();
      return open(std::string(Message(shape.status())));
    }
    if (fact.dtype == DType::kString) {
      const auto count = static_cast<size_t>(std::min<int64_t>(shape->elements(), 1 << 20));
      in.feeds.push_back(Tensor::Strings(*shape, std::vector<std::string>(count)));
      continue;
    }
    ONCILLA_ASSIGN(Tensor feed, Tensor::Allocate({fact.dtype, *shape}));
    in.feeds.push_back(std::move(feed));
  }
  return in;
}

}  // namespace oncilla::tool
