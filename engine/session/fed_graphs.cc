// Graphs imported for the feeds of a run, for models that cannot be imported, or not planned for
// these feeds, by the names of the feeds alone.
#include <algorithm>
#include <optional>
#include <utility>

#include "engine/session/executables.h"

namespace oncilla {
namespace {

// The feeds in the order of the graph's inputs; nullopt unless all are present with types and
// shapes that the graph accepts.
std::optional<std::vector<RunValue>> ThatFit(const Graph& graph,
                                             std::span<const NamedRunValue> feeds) {
  std::vector<RunValue> values;
  for (const NamedValue& input : graph.inputs()) {
    const auto given = std::ranges::find(feeds, input.name, &NamedRunValue::first);
    if (given == feeds.end() || !given->second.valid()) return std::nullopt;
    const RunValue& value = given->second;
    const Fact& fact = graph.fact(input.value);
    const bool list = !value.on_device() && value.host().is_list();
    if (fact.kind != (list ? ValueKind::kList : ValueKind::kTensor)) return std::nullopt;
    if (value.desc().dtype != fact.dtype) return std::nullopt;
    if (!list && !fact.shape.Accepts(value.desc().shape)) return std::nullopt;
    values.push_back(value);
  }
  return values;
}

}  // namespace

bool NeedsFeeds(const Status& imported) {
  return imported.code() == Code::kUnimplemented && Details(imported).stage == Stage::kLoad;
}

bool NeedsNarrower(const Status& run) {
  // Feeds that the session or the model's inputs refuse (kOptions) would fail with any graph.
  return run.code() == Code::kInvalidArgument && Details(run).stage != Stage::kOptions;
}

std::string Executables::KeyOf(const ImportRequest& request) {
  std::string key = request.signature + '\n';
  for (const std::string& f : request.feeds) key += f + '\n';
  key += '\n';
  for (const std::string& f : request.fetches) key += f + '\n';
  key += '\n';
  for (const std::string& t : request.targets) key += t + '\n';
  for (const Fact& fact : request.fed) {
    key += StrCat('\n', fact);
    if (!fact.has_value()) continue;
    key += '=';
    if (fact.dtype == DType::kString) {
      for (const std::string& text : fact.value.strings()) key += StrCat(text.size(), ':', text);
    } else {
      key.append(reinterpret_cast<const char*>(fact.value.bytes().data()),
                 fact.value.bytes().size());
    }
  }
  return key;
}

// Reduces facts to the level `known`. A short vector of integers is more often a shape than data,
// and then its length is a rank, so that length is kept.
Facts Executables::FactsOf(const Facts& fed, Known known) {
  Facts facts = fed;
  for (Fact& fact : facts) {
    const PartialShape shape = std::exchange(fact.shape, PartialShape());
    const bool whole = fact.has_value() && !IsFloat(fact.dtype);
    if (known < (whole ? Known::kWholeNumbers : Known::kNumbers)) fact.value = Tensor();
    if (fact.kind != ValueKind::kTensor || !shape.ranked()) continue;
    const bool few = shape.rank() == 1 && IsInteger(fact.dtype) && shape[0].size <= kMaxRank;
    fact.shape = known >= Known::kShapes || few ? shape : PartialShape::OfRank(shape.rank());
  }
  return facts;
}

Result<std::shared_ptr<Executor>> Executables::Find(const ImportRequest& request, int preferred,
                                                    const RunControl& control,
                                                    const GraphObserver& observe,
                                                    const FedFacts& fed) {
  if (!fed) return FindFor(request, preferred, control, observe);
  Known known = Known::kNames;
  std::string key;  // only built if some graph needs more than names
  {
    MutexLock lock(&mutex_);
    if (!known_.empty()) {
      key = KeyOf(request);
      if (const auto at = known_.find(key); at != known_.end()) known = at->second;
    }
  }
  Status refused;
  ImportRequest narrowed = request;
  std::string tried;
  // Import with as little knowledge of the feeds as possible, since each level of knowledge means
  // further graphs: names, then ranks, shapes, whole numbers and all numbers.
  for (;; known = static_cast<Known>(static_cast<int>(known) + 1)) {
    if (known != Known::kNames) narrowed.fed = FactsOf(fed(), known);
    // If this level knows nothing more of these feeds, the import would fail as before.
    if (!refused.ok()) {
      const std::string last = std::exchange(tried, KeyOf(narrowed));
      if (last == tried && known == Known::kNumbers) return refused;
      if (last == tried) continue;
    }
    auto found = FindFor(narrowed, preferred, control, observe);
    if (!NeedsFeeds(found.status())) {
      if (!refused.ok() && found.ok()) {
        MutexLock lock(&mutex_);
        known_[KeyOf(request)] = known;
      }
      // An error that concerns these feeds is reported at the first level at which it appears.
      return found;
    }
    // The first refusal says what is unsupported regardless of the feeds. Where all that is known
    // of them does not help either, the levels between are not tried.
    if (refused.ok()) {
      refused = found.status();
      ImportRequest narrowest = request;
      narrowest.fed = FactsOf(fed(), Known::kNumbers);
      if (KeyOf(narrowest) == KeyOf(narrowed)) return refused;
      if (NeedsFeeds(TryImport(narrowest, control))) return refused;
    }
    if (known == Known::kNumbers) return refused;
  }
}

std::shared_ptr<Executor> Executables::FindNarrower(const ImportRequest& request, int preferred,
                                                    const RunControl& control, Executor& executor,
                                                    std::span<const NamedRunValue> feeds,
                                                    const Facts& fed,
                                                    const GraphObserver& observe) {
  if (narrower_misses_.load() >= kMostMisses) return nullptr;
  const auto values = ThatFit(executor.compiled().graph, feeds);
  if (!values) return nullptr;
  if (!NeedsNarrower(executor.PlanForValues(*values).status())) return nullptr;
  ImportRequest narrowed = request;
  for (const Known known : {Known::kShapes, Known::kNumbers}) {
    const std::string last = KeyOf(narrowed);
    narrowed.fed = FactsOf(fed, known);
    if (last == KeyOf(narrowed)) continue;
    auto found = FindFor(narrowed, preferred, control, observe);
    if (!found.ok()) continue;
    const auto own = ThatFit((*found)->compiled().graph, feeds);
    if (own && (*found)->PlanForValues(*own).ok()) {
      narrower_misses_.store(0);
      return *std::move(found);
    }
    MutexLock lock(&mutex_);  // it serves no other feeds
    std::erase_if(executors_, [&](const Entry& e) { return e.executor == *found; });
  }
  ++narrower_misses_;
  return nullptr;
}

}  // namespace oncilla
