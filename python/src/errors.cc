// Raises failures of the C interface as exceptions: each code has a class in
// python/oncilla/_errors.py.
#include "python/src/deferred.h"
#include "python/src/text.h"

namespace oncilla_python {

nb::object ToException(oncilla_status* status) {
  const std::unique_ptr<oncilla_status, void (*)(oncilla_status*)> own(status, oncilla_status_free);
  int32_t driver_code = 0;
  const bool has_driver_code = oncilla_status_driver_code(status, &driver_code) != 0;
  return PythonHelper("make_error")(
      static_cast<int>(oncilla_status_code(status)), Readable(oncilla_status_message(status)),
      oncilla_status_stage(status), Readable(oncilla_status_node(status)),
      oncilla_status_device(status), has_driver_code ? nb::cast(driver_code) : nb::none());
}

void Check(oncilla_status* status) {
  if (status == nullptr) return;
  const nb::object error = ToException(status);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

void CheckDrained(oncilla_status* status) {
  Drain();
  Check(status);
}

}  // namespace oncilla_python
