// Finds the value of each input: --input takes precedence over --input-dir, and that over --random.
#include "tools/oncilla/inputs.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <unordered_map>

#include "tools/oncilla/exit_code.h"
#include "tools/oncilla/files/random_tensor.h"
#include "tools/oncilla/files/tensor_file.h"
#include "tools/oncilla/names.h"

namespace oncilla::tool {
namespace {

// The names that may be given before '=': the inputs, also without ":0" if that is unambiguous.
std::vector<std::string> Spellings(const Signature& signature) {
  std::vector<std::string> names;
  for (const TensorInfo& info : signature.inputs) {
    names.push_back(info.name);
    if (info.name.ends_with(":0")) names.push_back(info.name.substr(0, info.name.size() - 2));
  }
  return names;
}

// The values of NAME=VALUE flags by full name; a repeated name is refused.
Result<std::map<std::string, std::string>> ByName(const std::vector<std::string>& assignments,
                                                  const Signature& signature,
                                                  std::string_view flag) {
  std::map<std::string, std::string> out;
  if (assignments.empty()) return out;  // called for each input: make no list of all of them
  const std::vector<std::string> names = Spellings(signature);
  for (const std::string& text : assignments) {
    auto split = SplitAssignment(text, names, "input");
    if (!split.ok()) return In(split.status(), StrCat(flag, " ", text));
    const std::string name = FullName(split->first, signature.inputs);
    if (!out.emplace(name, split->second).second) {
      return BadOption(flag, " gives input '", name, "' twice");
    }
  }
  return out;
}

Result<ImageOptions> ParseImage(const InputFlags& flags) {
  ImageOptions image;
  if (!flags.resize.empty()) {
    ONCILLA_ASSIGN(const Shape size, ParseShape(flags.resize, "--resize"));
    if (size.rank() != 2 || size[0] < 1 || size[1] < 1 || size[0] > 65535 || size[1] > 65535) {
      return BadOption("--resize takes HEIGHTxWIDTH, not '", flags.resize, "'");
    }
    image.resize = {size[0], size[1]};
  }
  ONCILLA_ASSIGN(image.mean, ParseNumbers(flags.mean, "--mean"));
  ONCILLA_ASSIGN(image.scale, ParseNumbers(flags.scale, "--scale"));
  if (!flags.layout.empty()) image.layout = flags.layout;
  return image;
}

bool IsPhoto(std::string file) {
  for (char& c : file) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return file.ends_with(".png") || file.ends_with(".jpg") || file.ends_with(".jpeg");
}

const TensorInfo* Find(const Signature& signature, const std::string& name) {
  for (const TensorInfo& info : signature.inputs) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

// Compares type and shape with the model's declaration; the refusal states both.
Status CheckFits(const TensorInfo& info, const Tensor& tensor, const std::string& source) {
  if (tensor.is_list()) return {};  // its elements were compared when they were read
  const bool dtype = info.dtype == DType::kInvalid || info.dtype == tensor.dtype();
  if (dtype && info.shape.Accepts(tensor.shape())) return {};
  return BadOption("input '", info.name, "' must be ", Fact::Of(info.dtype, info.shape), ", ",
                   source, " is ", tensor.desc());
}

}  // namespace

void InputFlags::AddTo(CLI::App& app) {
  app.add_option("--input", inputs,
                 "An input's value: .npy, .npz:KEY, .pb (TensorProto), .json (strings), .png, "
                 ".jpg, a folder of a sequence's elements, anything else raw bytes")
      ->type_name("NAME=FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--input-dir", input_dir,
                 "Read <NAME>.npy or .json as --output-dir writes them, or input_0.pb, ..")
      ->type_name("DIR");
  app.add_flag("--random", random,
               "Random values for other inputs: floats in [0,1), integers 0..9, the same on "
               "every machine");
  app.add_option("--seed", seed, "Seed of --random")
      ->check([](const std::string& text) {
        uint64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool whole = error == std::errc() && end == text.data() + text.size();
        return whole ? std::string()
                     : StrCat("'", text, "' is not a whole number from 0 to 18446744073709551615");
      })
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--shape", shapes, "Sizes that the model leaves open, as 1x224x224x3")
      ->type_name("NAME=SHAPE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--resize", resize, "Images: resize, bilinear")->type_name("HxW");
  app.add_option("--mean", mean, "Images: subtract, one number or one per channel")
      ->type_name("M,..");
  app.add_option("--scale", scale, "Images: then multiply, one number or one per channel")
      ->type_name("S,..");
  app.add_option("--layout", layout, "Images: nhwc or nchw (else told by the input's shape)")
      ->check(CLI::IsMember({"nhwc", "nchw"}))
      ->type_name("L");
}

Signature WithInnerInputs(const Signature& signature, const InputFlags& flags) {
  Signature out = signature;
  const std::vector<std::string> names = Spellings(signature);
  for (const std::string& text : flags.inputs) {
    if (SplitAssignment(text, names, "input").ok()) continue;
    for (size_t at = text.rfind('='); at != std::string::npos && at > 0;
         at = text.rfind('=', at - 1)) {
      const std::string name = text.substr(0, at);
      const size_t digits = name.find_last_not_of("0123456789");
      if (digits == std::string::npos || name[digits] != ':' || digits + 1 == name.size()) continue;
      TensorInfo info;
      info.name = name;
      if (Find(out, name) == nullptr) out.inputs.push_back(std::move(info));
      break;
    }
  }
  return out;
}

Result<std::vector<std::string>> GivenInputs(const Signature& signature, const InputFlags& flags) {
  ONCILLA_ASSIGN(const auto files, ByName(flags.inputs, signature, "--input"));
  std::vector<std::string> names;
  for (const TensorInfo& info : signature.inputs) {
    if ((flags.random && !info.has_default) || files.count(info.name)) {
      names.push_back(info.name);
    } else if (!flags.input_dir.empty()) {
      const auto index = static_cast<int>(&info - signature.inputs.data());
      const InputWish wish{info.name, info.dtype, info.shape, info.kind};
      if (FindInputFile(flags.input_dir, wish, index).ok()) names.push_back(info.name);
    }
  }
  return names;
}

Result<Shape> SettledShape(const TensorInfo& info, const InputFlags& flags,
                           const Signature& signature) {
  ONCILLA_ASSIGN(const auto shapes, ByName(flags.shapes, signature, "--shape"));
  if (auto it = shapes.find(info.name); it != shapes.end()) {
    ONCILLA_ASSIGN(const Shape shape, ParseShape(it->second, "--shape"));
    if (!info.shape.Accepts(shape)) {
      return BadOption("input '", info.name, "' has the shape ", info.shape, ", --shape gives ",
                       shape);
    }
    return shape;
  }
  PartialShape shape = info.shape;
  if (shape.ranked() && shape.rank() > 0 && !shape[0].known()) shape[0] = Dim(1);
  if (!shape.known()) {
    return BadOption("input '", info.name, "' is ", Fact::Of(info.dtype, info.shape),
                     ": give its sizes with --shape ", info.name, "=..");
  }
  return shape.ToShape();
}

Result<Inputs> GatherInputs(const Signature& signature, const std::vector<std::string>& needed,
                            const InputFlags& flags) {
  ONCILLA_ASSIGN(const auto files, ByName(flags.inputs, signature, "--input"));
  ONCILLA_ASSIGN(const auto shapes, ByName(flags.shapes, signature, "--shape"));
  ONCILLA_ASSIGN(const ImageOptions image, ParseImage(flags));
  std::unordered_map<std::string_view, const TensorInfo*> by_name;
  for (const TensorInfo& info : signature.inputs) by_name.emplace(info.name, &info);
  Inputs out;
  int photos = 0;
  for (const std::string& name : needed) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      return BadOption("the run needs '", name, "', which is not an input of the signature");
    }
    const TensorInfo* info = found->second;
    InputWish wish{name, info->dtype, info->shape, info->kind};
    if (auto it = shapes.find(name); it != shapes.end()) {
      ONCILLA_ASSIGN(wish.shape, SettledShape(*info, flags, signature));
    }
    std::string source;
    Tensor tensor;
    if (auto it = files.find(name); it != files.end()) {
      source = it->second;
    } else if (!flags.input_dir.empty()) {
      const auto index = static_cast<int>(info - signature.inputs.data());
      auto file = FindInputFile(flags.input_dir, wish, index);
      if (!file.ok() && !flags.random) return file.status();
      if (file.ok()) source = *file;
    }
    if (!source.empty()) {
      ONCILLA_ASSIGN(tensor, ReadTensorFile(source, wish, image));
      ONCILLA_TRY(CheckFits({name, "", wish.dtype, wish.shape}, tensor, source));
      if (IsPhoto(source) && ++photos == 1) out.photo = source;
    } else if (flags.random) {
      if (info->dtype == DType::kInvalid) {
        return BadOption("the model does not say the type of input '", name, "'; give a file");
      }
      if (info->kind != TensorInfo::Kind::kTensor) {
        return BadOption("--random makes no ", TypeText(*info), "; give a file for input '", name,
                         "'");
      }
      ONCILLA_ASSIGN(const Shape shape, SettledShape(*info, flags, signature));
      ONCILLA_ASSIGN(tensor, RandomTensor(flags.seed, name, {info->dtype, shape}));
    } else {
      return BadOption("input '", name, "' (", TypeText(*info), ") has no value; give --input ",
                       name, "=FILE, --input-dir or --random");
    }
    out.feeds.emplace_back(name, std::move(tensor));
  }
  if (photos != 1) out.photo.clear();
  return out;
}

}  // namespace oncilla::tool
