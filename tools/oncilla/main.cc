// The oncilla program.
#include "tools/oncilla/program.h"

int main(int argc, char** argv) { return oncilla::tool::RunProgram(argc, argv); }
