// Writes programs to files. A file is named by the hash of its text, so files of the same name hold
// the same program.
#include "backends/opencl/simulated/program_files.h"

#include <fstream>

#include "backends/opencl/runtime/program_cache.h"
#include "engine/base/hash.h"

namespace oncilla::opencl {

Result<std::string> ProgramFiles::Add(const Source& source, std::string_view generated,
                                      const Defines& defines, const Places& places) {
  ONCILLA_ASSIGN(const std::string text, ProgramText(source, generated, defines, places));
  Sha256 hash;
  hash.UpdateField(text);
  const std::string key = hash.FinishHex().substr(0, 16);
  if (const auto known = names_.find(key); known != names_.end()) return known->second;
  std::string name(source.path.substr(0, source.path.rfind('.')));
  name[name.find('/')] = '_';
  name += "_" + key;
  const std::string path = StrCat(folder_, "/", name, ".cl");
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file.good()) return Error(Code::kUnavailable, "cannot write ", path);
  ++counts_[std::string(source.path)];
  names_.emplace(key, name);
  return name;
}

}  // namespace oncilla::opencl
