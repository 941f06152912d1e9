// oncilla convert: converts any model to the engine's own file and checks the result against the
// source.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>

#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/import/container/container.h"
#include "engine/import/convert_module.h"
#include "engine/import/tf/source.h"
#include "tools/oncilla/commands/commands.h"
#include "tools/oncilla/commands/convert_check.h"
#include "tools/oncilla/exit_code.h"
#include "tools/oncilla/flags.h"
#include "tools/oncilla/names.h"
#include "tools/oncilla/report.h"
#include "tools/oncilla/terminal.h"

namespace oncilla::tool {
namespace {

struct ConvertFlags {
  ModelFlags model;
  InputFlags input;
  std::string out, inputs, outputs, targets, precision = "fp32", to = "oncilla";
  int threads = 0;
  bool no_verify = false;
};

// One signature to convert, and the names to import.
struct Asked {
  Signature signature;
  ImportRequest request;
  std::string target = "";  // a node to run for its effects, instead of the outputs
};

std::vector<std::string> NamesOf(const std::vector<TensorInfo>& infos) {
  std::vector<std::string> names;
  for (const TensorInfo& info : infos) names.push_back(info.name);
  return names;
}

std::vector<std::string> Chosen(const std::string& text, const std::vector<TensorInfo>& known) {
  if (text.empty()) return NamesOf(known);
  std::vector<std::string> names = SplitAt(text, ',');
  for (std::string& name : names) name = FullName(name, known);
  return names;
}

Result<std::vector<Asked>> AskedOf(const ModelSource& source, const ConvertFlags& flags) {
  std::vector<const Signature*> signatures;
  const bool one = !flags.model.signature.empty() || !flags.inputs.empty() ||
                   !flags.outputs.empty() || flags.to == "graphdef";
  if (one) {
    ONCILLA_ASSIGN(const Signature* signature, source.FindSignature(flags.model.signature));
    signatures.push_back(signature);
  } else {
    for (const Signature& signature : source.signatures()) signatures.push_back(&signature);
  }
  if (signatures.empty()) {
    return Unsupported(flags.model.path, ": the model has no signature");
  }
  std::vector<Asked> asked;
  for (const Signature* signature : signatures) {
    asked.push_back({*signature,
                     {signature->key, Chosen(flags.inputs, signature->inputs),
                      Chosen(flags.outputs, signature->outputs)}});
  }
  if (!flags.targets.empty()) {
    const Signature& first = *signatures[0];
    for (const std::string& target : SplitAt(flags.targets, ',')) {
      asked.push_back({first, {first.key, {}, {}, {target}}, target});
    }
  }
  return asked;
}

// The names that a user may give for tensors, also without ":0".
std::vector<std::string> Spellings(const std::vector<TensorInfo>& infos) {
  std::vector<std::string> names = NamesOf(infos);
  for (const TensorInfo& info : infos) {
    if (info.name.ends_with(":0")) names.push_back(info.name.substr(0, info.name.size() - 2));
  }
  return names;
}

// The sizes that --shape gives to inputs of this signature. Each input that is named must be in at
// least one signature.
Result<std::vector<std::pair<std::string, Shape>>> ShapesFor(const Signature& signature,
                                                             const ConvertFlags& flags,
                                                             std::set<std::string>* used) {
  std::vector<std::pair<std::string, Shape>> shapes;
  const std::vector<std::string> names = Spellings(signature.inputs);
  for (const std::string& text : flags.input.shapes) {
    auto split = SplitAssignment(text, names, "input");
    if (!split.ok()) continue;
    ONCILLA_ASSIGN(Shape shape, ParseShape(split->second, "--shape"));
    shapes.emplace_back(FullName(split->first, signature.inputs), std::move(shape));
    used->insert(text);
  }
  return shapes;
}

Status AllShapesUsed(const std::vector<Asked>& asked, const ConvertFlags& flags,
                     const std::set<std::string>& used) {
  for (const std::string& text : flags.input.shapes) {
    if (used.count(text) > 0) continue;
    std::vector<std::string> names;
    for (const Asked& one : asked) {
      for (const std::string& name : Spellings(one.signature.inputs)) names.push_back(name);
    }
    return In(SplitAssignment(text, names, "input").status(), StrCat("--shape ", text));
  }
  return {};
}

std::vector<std::string> ResourcesOf(const Module& module) {
  std::vector<std::string> resources;
  for (const ModuleVariable& variable : module.variables) resources.push_back(variable.resource);
  return resources;
}

// A variable that one signature changes may look like a constant to another one, until an import
// shows that it changes. So all signatures are imported again until no further such variable is
// found.
Result<std::vector<Module>> ImportAll(ModelSource& source, const std::vector<Asked>& asked,
                                      const std::shared_ptr<const OpSet>& ops) {
  std::set<std::string> state;
  for (;;) {
    std::vector<Module> modules;
    bool more = false;
    for (const Asked& one : asked) {
      auto module = source.Import(one.request, ops);
      if (!module.ok()) {
        return In(module.status(), one.target.empty()
                                       ? StrCat("signature '", one.signature.key, "'")
                                       : StrCat("target '", one.target, "'"));
      }
      for (const std::string& resource : ResourcesOf(*module)) {
        more |= state.insert(resource).second;
      }
      modules.push_back(*std::move(module));
    }
    if (!more || asked.size() == 1) return modules;
    source.NoteState({state.begin(), state.end()});
  }
}

// Names and sources as in the signature, types and shapes as in the graph.
std::vector<TensorInfo> InfosOf(const Graph& graph, std::span<const NamedValue> values,
                                const std::vector<TensorInfo>& known) {
  std::unordered_map<std::string_view, const TensorInfo*> by_name;
  for (const TensorInfo& one : known) by_name.emplace(one.name, &one);
  std::vector<TensorInfo> infos;
  for (const NamedValue& value : values) {
    const Fact& fact = graph.fact(value.value);
    TensorInfo info{value.name, value.name, fact.dtype, fact.shape};
    if (const auto found = by_name.find(value.name); found != by_name.end()) {
      const TensorInfo& one = *found->second;
      info.source = one.source;
      info.kind = one.kind;
      if (auto merged = MergeShapes(fact.shape, one.shape); merged.ok()) info.shape = *merged;
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

Status AddInitialisers(ModelSource& source, const std::shared_ptr<const OpSet>& ops,
                       ContainerContents* contents) {
  std::map<std::string, bool> has_value;  // by resource
  const auto look = [&](const Module& module) {
    for (const ModuleVariable& variable : module.variables) {
      has_value[variable.resource] |= variable.initial.valid();
    }
  };
  for (const auto& entry : contents->entries) look(entry.module);
  for (const auto& [name, module] : contents->targets) look(module);
  for (const auto& [resource, known] : has_value) {
    if (known) continue;
    auto module = source.ImportInitialiser({resource}, ops);
    if (!module.ok()) return module.status();
    if (!module->main.nodes().empty()) {
      contents->initialisers.emplace_back(resource, *std::move(module));
    }
  }
  return {};
}

bool DrawsNumbers(const Module& module) {
  const auto draws = [](const Graph& graph) {
    return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                       [](const Node& node) { return node.op->traits.is_random; });
  };
  return draws(module.main) || std::any_of(module.functions.begin(), module.functions.end(),
                                           [&](const auto& f) { return draws(f.second); });
}

Result<ContainerContents> Import(const ConvertFlags& flags, DType weights,
                                 const std::shared_ptr<const OpSet>& ops, ConvertCounts* counts) {
  const Progress progress(StrCat("reading ", flags.model.path));
  const OpenModelOptions open = LoadOptionsOf(flags.model);
  auto source = OpenModel(flags.model.path, open);
  if (!source.ok()) return OfModel(source.status());
  ONCILLA_ASSIGN(const auto asked, AskedOf(**source, flags));
  auto modules = ImportAll(**source, asked, ops);
  if (!modules.ok()) return OfModel(modules.status());
  ContainerContents contents;
  contents.source_format = (*source)->format();
  std::set<std::string> used;
  for (size_t i = 0; i < asked.size(); ++i) {
    ConvertOptions options;
    options.weights = weights;
    ONCILLA_ASSIGN(options.shapes, ShapesFor(asked[i].signature, flags, &used));
    auto module = Converted((*modules)[i], options, counts);
    if (!module.ok()) {
      const bool by_shape = !options.shapes.empty();
      return by_shape ? WithStage(In(module.status(), "--shape"), Stage::kOptions)
                      : OfModel(module.status());
    }
    if (!asked[i].target.empty()) {
      contents.targets.emplace_back(asked[i].target, *std::move(module));
      continue;
    }
    Signature signature;
    signature.key = asked[i].signature.key;
    signature.inputs = InfosOf(module->main, module->main.inputs(), asked[i].signature.inputs);
    signature.outputs = InfosOf(module->main, module->main.outputs(), asked[i].signature.outputs);
    contents.entries.push_back({std::move(signature), *std::move(module)});
  }
  ONCILLA_TRY(AllShapesUsed(asked, flags, used));
  Status status = AddInitialisers(**source, ops, &contents);
  if (!status.ok()) return OfModel(status);
  return contents;
}

// Runs source and result on the CPU and compares them. Reports what was compared; fails when a
// difference is too large.
class Verification {
 public:
  static Result<Verification> Begin(const ConvertFlags& flags, DType weights,
                                    const std::string& path,
                                    const std::shared_ptr<Runtime>& runtime) {
    Verification out;
    SessionOptions options;
    options.device = "cpu";
    options.threads = flags.threads;
    out.weights_ = weights;
    ONCILLA_ASSIGN(out.session_, Session::Create(runtime, options));
    const OpenModelOptions open = LoadOptionsOf(flags.model);
    ONCILLA_ASSIGN(out.source_, out.session_->Load(flags.model.path, open));
    ONCILLA_ASSIGN(out.result_, out.session_->Load(path, {}));
    return out;
  }

  // `signature` is the result's; its names are the source's too, except for those that were
  // renamed.
  Status Compare(const Signature& signature, const std::string& source_signature,
                 const CheckOptions& options) {
    auto check = Check(*source_, *result_, signature, source_signature, options);
    const std::string name = source_signature.empty() ? "" : StrCat(" '", source_signature, "'");
    if (!check.ok()) return In(check.status(), StrCat("verifying", name));
    report_ += StrCat(
        "verified", name, " on ", check->inputs.empty() ? "no input" : check->inputs,
        options.random_numbers ? "; it draws random numbers, so only types and shapes" : "", "\n");
    for (const OutputError& output : check->outputs) {
      report_ += StrCat("  ", OneLine(output.name), "  ", Describe(output),
                        output.fits ? "" : "  DIFFERS", "\n");
      if (!output.fits && wrong_.empty()) {
        wrong_ = StrCat("output '", output.name, "'", name.empty() ? "" : " of" + name, " ",
                        DescribeMisfit(output, weights_));
      }
    }
    return {};
  }

  // Returns the report; if something differed, prints the report and fails.
  Result<std::string> End() const {
    if (wrong_.empty()) return report_;
    ONCILLA_TRY(PrintResult(report_));
    return Error(Code::kDataLoss, wrong_);
  }

 private:
  DType weights_ = DType::kF32;
  std::shared_ptr<Session> session_;
  std::shared_ptr<Model> source_, result_;
  std::string report_, wrong_;
};

Result<std::string> Verify(const ConvertFlags& flags, DType weights, const std::string& path,
                           const ContainerContents& contents,
                           const std::shared_ptr<Runtime>& runtime) {
  const Progress progress("verifying");
  ONCILLA_ASSIGN(Verification verification, Verification::Begin(flags, weights, path, runtime));
  for (const ContainerContents::Entry& entry : contents.entries) {
    CheckOptions options{flags.input, weights, DrawsNumbers(entry.module)};
    options.input.shapes.clear();  // the signature has them
    ONCILLA_TRY(verification.Compare(entry.signature, entry.signature.key, options));
  }
  return verification.End();
}

// Refuses to overwrite the source: the model's file, or a file in its folder.
Status CheckNotSource(const std::string& model, const std::string& target) {
  std::error_code failure;
  const std::filesystem::path to = std::filesystem::weakly_canonical(target, failure);
  if (failure) return {};  // the write will report why
  const std::filesystem::path from = std::filesystem::canonical(model, failure);
  if (failure) return {};
  bool same = std::filesystem::equivalent(from, to, failure) && !failure;
  if (FolderExists(model)) {
    for (auto above = to.parent_path(); !same; above = above.parent_path()) {
      same = above == from;
      if (above == above.root_path() || above.empty()) break;
    }
  }
  if (!same) return {};
  return BadOption(
      "--out ", target,
      FolderExists(model) ? " lies in the model's own folder, " : " is the model itself, ", model,
      ": choose another name");
}

// The same failure with the name that the user knows.
Status Renamed(const Status& status, const std::string& draft, const std::string& target) {
  std::string text(status.message());
  const size_t at = text.find(draft);
  if (at == std::string::npos) return status;
  Status out(status.code(), text.replace(at, draft.size(), target));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { out.SetPayload(url, payload); });
  return out;
}

// Writes a draft, and renames it to the result once `check`, which returns a report, succeeds.
template <class Write, class Check>
Result<std::string> WriteChecked(const ConvertFlags& flags, Write&& write, Check&& check) {
  auto target = WritableTarget(flags.out);
  if (!target.ok()) return WithStage(target.status(), Stage::kOptions);
  ONCILLA_TRY(CheckNotSource(flags.model.path, *target));
  // Only a verified file gets the final name.
  const std::string draft = flags.no_verify ? *target : *target + ".unverified";
  const TemporaryFile mark = flags.no_verify ? TemporaryFile() : TemporaryFile(draft);
  {
    const Progress progress(StrCat("writing ", flags.out));
    ONCILLA_TRY(Renamed(write(draft), draft, *target));
  }
  if (flags.no_verify) return std::string();
  Result<std::string> report = check(draft);
  if (!report.ok()) {
    (void)RemoveFile(draft);
    return Renamed(report.status(), draft, *target);
  }
  if (std::rename(draft.c_str(), target->c_str()) != 0) {
    (void)RemoveFile(draft);
    return WithStage(Error(Code::kUnavailable, flags.out, ": cannot be given its name"),
                     Stage::kFile);
  }
  return report;
}

// The signature with types and sizes that the file leaves open but the graph knows.
Result<Signature> Known(const Module& module, const Asked& asked) {
  Signature signature;
  signature.inputs = InfosOf(module.main, module.main.inputs(), asked.signature.inputs);
  signature.outputs = InfosOf(module.main, module.main.outputs(), asked.signature.outputs);
  return signature;
}

std::string NamesText(std::string_view role,
                      const std::vector<std::pair<std::string, std::string>>& names) {
  std::string out;
  for (const auto& [asked, name] : names) {
    out += StrCat("  ", role, name, asked == name ? "" : "  for '" + asked + "'", "\n");
  }
  return out;
}

Status ConvertToGraphDef(const ConvertFlags& flags) {
  if (flags.precision != "fp32") return BadOption("--precision is for our own model file");
  if (!flags.targets.empty()) return BadOption("--targets is for our own model file");
  const OpenModelOptions open = LoadOptionsOf(flags.model);
  auto opened = OpenModel(flags.model.path, open);
  if (!opened.ok()) return OfModel(opened.status());
  auto* source = dynamic_cast<TfSource*>(opened->get());
  if (source == nullptr) {
    return OfModel(Unsupported(flags.model.path,
                               ": only TensorFlow's models become a GraphDef; "
                               "this is ",
                               (*opened)->format()));
  }
  ONCILLA_ASSIGN(const auto all_asked, AskedOf(*source, flags));
  const Asked& asked = all_asked[0];
  std::set<std::string> used;
  ONCILLA_ASSIGN(const auto shapes, ShapesFor(asked.signature, flags, &used));
  ONCILLA_TRY(AllShapesUsed(all_asked, flags, used));
  auto frozen = source->Freeze(asked.request, shapes);
  if (!frozen.ok()) return OfModel(frozen.status());
  const auto write = [&](const std::string& path) { return WriteFrozenGraph(path, *frozen); };
  const auto check = [&](const std::string& path) -> Result<std::string> {
    const Progress progress("verifying");
    const std::shared_ptr<Runtime> runtime = RuntimeFlags{}.Create();
    auto module = source->Import(asked.request, runtime->ops());
    if (!module.ok()) {
      return In(OfModel(module.status()), "--no-verify writes the graph unchecked");
    }
    ONCILLA_ASSIGN(auto verification, Verification::Begin(flags, DType::kF32, path, runtime));
    ONCILLA_ASSIGN(Signature signature, Known(*module, asked));
    for (TensorInfo& info : signature.inputs) {
      for (const auto& [name, shape] : shapes) {
        if (info.name == name) info.shape = PartialShape(shape);
      }
    }
    CheckOptions options{flags.input, DType::kF32, DrawsNumbers(*module)};
    options.input.shapes.clear();  // the signature has them
    options.renamed_inputs.insert(frozen->inputs.begin(), frozen->inputs.end());
    options.renamed_outputs.insert(frozen->outputs.begin(), frozen->outputs.end());
    ONCILLA_TRY(verification.Compare(signature, asked.signature.key, options));
    return verification.End();
  };
  ONCILLA_ASSIGN(const std::string report, WriteChecked(flags, write, check));
  return PrintResult(StrCat(
      flags.out, ": ", HumanBytes(static_cast<int64_t>(frozen->graph_def.bytes())),
      ", a GraphDef with ", frozen->variables, " variables as constants\n",
      NamesText("input   ", frozen->inputs), NamesText("output  ", frozen->outputs), report));
}

Status Convert(const ConvertFlags& flags) {
  if (FolderExists(flags.out)) return BadOption(flags.out, " is a folder");
  if (flags.to == "graphdef") return ConvertToGraphDef(flags);
  const DType weights = flags.precision == "fp16"   ? DType::kF16
                        : flags.precision == "bf16" ? DType::kBF16
                                                    : DType::kF32;
  const std::shared_ptr<Runtime> runtime = RuntimeFlags{}.Create();
  ConvertCounts counts;
  ONCILLA_ASSIGN(const ContainerContents contents, Import(flags, weights, runtime->ops(), &counts));
  ONCILLA_ASSIGN(const std::string report,
                 WriteChecked(
                     flags, [&](const std::string& path) { return WriteContainer(path, contents); },
                     [&](const std::string& path) {
                       return Verify(flags, weights, path, contents, runtime);
                     }));
  ONCILLA_ASSIGN(const auto file, MappedFile::Open(flags.out));
  std::string text = StrCat(flags.out, ": ", HumanBytes(static_cast<int64_t>(file->text().size())),
                            ", from ", contents.source_format, ", ", contents.entries.size(),
                            contents.entries.size() == 1 ? " signature" : " signatures");
  if (!contents.targets.empty()) {
    text += StrCat(", ", contents.targets.size(),
                   contents.targets.size() == 1 ? " target" : " targets");
  }
  text += "\n";
  if (weights != DType::kF32) {
    text += StrCat(counts.narrowed, " constants stored as ", Name(weights));
    if (counts.overflowing > 0) text += StrCat(", ", counts.overflowing, " too large for it");
    text += "\n";
  }
  return PrintResult(text + report);
}

}  // namespace

Action AddConvert(CLI::App& app) {
  auto flags = std::make_shared<ConvertFlags>();
  flags->model.AddTo(app);
  app.get_option("--signature")->description("Only this signature (else all)");
  app.add_option("-o,--out", flags->out, "The file to write")->required()->type_name("FILE");
  app.add_option("--inputs", flags->inputs, "Tensors that are fed (else the signature's)")
      ->type_name("NAME,..");
  app.add_option("--outputs", flags->outputs, "Tensors that are computed (else the signature's)")
      ->type_name("NAME,..");
  app.add_option("--targets", flags->targets,
                 "Nodes of a TensorFlow graph that run --target shall find in the converted model")
      ->type_name("NODE,..");
  app.add_option("--to", flags->to,
                 "What to write: oncilla (our own model file) or graphdef (frozen, for TensorFlow)")
      ->check(CLI::IsMember({"oncilla", "graphdef"}))
      ->type_name("FORMAT")
      ->capture_default_str();
  app.add_option("--precision", flags->precision, "How weights are stored: fp32, fp16 or bf16")
      ->check(CLI::IsMember({"fp32", "fp16", "bf16"}))
      ->type_name("P")
      ->capture_default_str();
  flags->input.AddTo(app);
  app.remove_option(app.get_option("--random"));
  app.get_option("--seed")->description("Seed of the random inputs for the check");
  app.get_option("--input")->description("An input for the check, as run takes it");
  app.get_option("--shape")->description("Sizes to fix in the converted model, as 1x224x224x3");
  app.add_option("--threads", flags->threads, "Threads for the check (0: all processors)")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  app.add_flag("--no-verify", flags->no_verify, "Do not run source and result to compare them");
  app.footer(
      "Examples:\n"
      "  oncilla convert mobilenet/ -o mobilenet.oncilla\n"
      "  oncilla convert mobilenet/ -o small.oncilla --precision fp16 --shape image=1x224x224x3\n"
      "  oncilla convert mobilenet/ -o frozen.pb --to graphdef\n"
      "  oncilla convert frozen.pb -o features.oncilla --outputs block_16_project_BN/add:0");
  return [flags] { return Convert(*flags); };
}

}  // namespace oncilla::tool
