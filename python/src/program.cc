// The oncilla program as a function of the library, for `python -m oncilla`.
#include "tools/oncilla/program.h"

#include <oncilla/oncilla.h>

#include <iostream>

extern "C" ONCILLA_API int oncilla_program_main(int argc, char** argv) {
  const int code = oncilla::tool::RunProgram(argc, argv);
  std::cout.flush();
  return code;
}
