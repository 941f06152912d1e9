// The extension module oncilla._oncilla, on which the Python half of the package is built.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>

#include "python/src/handles.h"

extern "C" int oncilla_program_main(int argc, char** argv);

namespace oncilla_python {
namespace {

PyObject* helpers = nullptr;  // a dict, set once by set_helpers()

int RunProgram(const std::vector<std::string>& arguments) {
  std::vector<std::string> texts = arguments;
  std::vector<char*> argv;
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  const Unlock unlocked;
  return oncilla_program_main(static_cast<int>(texts.size()), argv.data());
}

}  // namespace

nb::handle PythonHelper(const char* name) {
  nb::handle found =
      helpers == nullptr ? nb::handle() : nb::handle(PyDict_GetItemString(helpers, name));
  if (!found.is_valid()) throw std::runtime_error("oncilla is not imported completely");
  return found;
}

}  // namespace oncilla_python

NB_MODULE(_oncilla, m) {
  using namespace oncilla_python;
  // Results may outlive the interpreter's last collection; that is not an error of the program.
  nb::set_leak_warnings(false);
  m.def("set_helpers", [](nb::dict given) { helpers = given.release().ptr(); });
  m.def("version", &oncilla_version);
  m.def("build_info", &oncilla_build_info);
  m.def("run_program", [](const std::vector<nb::bytes>& arguments) {
    std::vector<std::string> texts;
    for (const nb::bytes& a : arguments) texts.emplace_back(a.c_str(), a.size());
    return RunProgram(texts);
  });
  DefineTensor(m);
  DefineDevices(m);
  DefineSession(m);
  DefineModel(m);
  DefineCallable(m);
  DefineGraph(m);
  DefineOpenCl(m);
  DefinePrecision(m);
  DefineDeferred(m);
}
