// Text that is not UTF-8 is passed on instead of refused.
#include "python/src/text.h"

#include <cstring>
#include <mutex>
#include <set>

namespace oncilla_python {
namespace {

nb::object Decoded(std::string_view text, const char* errors) {
  PyObject* made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), errors);
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

// The bytes of a str with surrogates, which Python does not keep beside the str as it does UTF-8.
// They are kept for the life of the process: there are few such names, those of damaged files.
std::string_view BytesOf(nb::handle str) {
  static auto& kept = *new std::set<std::string>;
  static auto& mutex = *new std::mutex;
  PyErr_Clear();  // the failure of the strict encoding
  const nb::object bytes =
      nb::steal(PyUnicode_AsEncodedString(str.ptr(), "utf-8", "surrogateescape"));
  if (!bytes.is_valid()) throw nb::python_error();
  char* from = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes.ptr(), &from, &size) != 0) throw nb::python_error();
  const std::lock_guard lock(mutex);
  return *kept.emplace(from, static_cast<size_t>(size)).first;
}

}  // namespace

nb::object NameOf(const char* name) { return Decoded(name, "surrogateescape"); }

nb::object Readable(std::string_view text) { return Decoded(text, "backslashreplace"); }

const char* TextOf(nb::handle str) {
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(str.ptr(), &size);
  if (utf8 == nullptr && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError) == 0) {
    throw nb::python_error();  // not a str
  }
  const std::string_view text =
      utf8 != nullptr ? std::string_view(utf8, static_cast<size_t>(size)) : BytesOf(str);
  if (std::strlen(text.data()) != text.size()) {
    throw nb::value_error("a name holds a zero character");
  }
  return text.data();
}

}  // namespace oncilla_python
