// The oncilla program as a function, which the Python package calls too.
#pragma once

namespace oncilla::tool {

// Runs one command line, of which argv[0] is the program's name, and returns the exit code. Called
// once in a process: it takes over SIGINT and the standard streams.
int RunProgram(int argc, char** argv);

}  // namespace oncilla::tool
