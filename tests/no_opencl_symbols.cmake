# The library must neither define nor need a name of OpenCL's: it opens OpenCL itself, and a program
# that links it may link a libOpenCL of its own.
#   cmake -DNM=<nm> -DLIBRARY=<archive or shared object> -P no_opencl_symbols.cmake
execute_process(COMMAND ${NM} ${LIBRARY} OUTPUT_VARIABLE symbols RESULT_VARIABLE code ERROR_QUIET)
if(NOT code EQUAL 0 OR NOT symbols MATCHES "OpenPlatforms")
  message(FATAL_ERROR "nm ${LIBRARY} failed or shows nothing of the OpenCL backend")
endif()
string(REGEX MATCHALL "[^\n]* [A-Za-z] (oncilla_type_of_)?cl[A-Z][^\n]*" found "${symbols}")
if(found)
  list(JOIN found "\n" found)
  message(FATAL_ERROR "names of OpenCL in ${LIBRARY}:\n${found}")
endif()
