// Names and texts between Python's str and the C interface. The bytes of a file or of a driver need
// not be UTF-8, and must not make a call fail that would work in C.
#pragma once

#include "python/src/handles.h"

namespace oncilla_python {

// A name that may come back to the library: bytes that are not UTF-8 become surrogates, as in
// os.listdir.
nb::object NameOf(const char* name);
// A text for people: such bytes become escapes, which can be printed.
nb::object Readable(std::string_view text);
// The characters of a str, which keeps them; surrogates become the bytes that they stand for again.
// Refuses zero characters.
const char* TextOf(nb::handle str);

}  // namespace oncilla_python
