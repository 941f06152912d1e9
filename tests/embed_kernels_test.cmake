# Test of tools/embed_kernels.cmake: runs it over small trees made here.
#   cmake -DSCRIPT=<embed_kernels.cmake> -DWORK=<scratch folder> -P embed_kernels_test.cmake
file(REMOVE_RECURSE "${WORK}")
file(WRITE "${WORK}/k/common/a.clh" "#include \"common/b.clh\"\nint a;\n")
file(WRITE "${WORK}/k/common/b.clh" "int b; // [x;y] \\ kept\n")
file(WRITE "${WORK}/k/norm/soft_max.cl"
  "// head\n#include \"common/a.clh\"\n#include \"common/b.clh\"\n__kernel void k() {}\n")
string(REPEAT "// 0123456789; [abc] \\n\n" 1000 long)
file(WRITE "${WORK}/k/pool/long.cl" "${long}")
file(WRITE "${WORK}/k/pool/notes.txt" "not a kernel")

function(embed root result)
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${root} -DOUT=${WORK}/out -P ${SCRIPT}
                  RESULT_VARIABLE code ERROR_VARIABLE err)
  set(${result} "${code}:${err}" PARENT_SCOPE)
endfunction()
function(expect text part)
  string(FIND "${text}" "${part}" at)
  if(at EQUAL -1)
    string(SUBSTRING "${text}" 0 1500 text)
    string(SUBSTRING "${part}" 0 500 part)
    message(FATAL_ERROR "missing <${part}> in:\n${text}")
  endif()
endfunction()

embed("${WORK}/k" result)
expect("${result}" "0:")
file(READ "${WORK}/out/kernels.gen.h" header)
expect("${header}" "namespace oncilla::opencl::cl {\nextern const Source kNormSoftMax;\nextern const Source kPoolLong;\n}")
file(READ "${WORK}/out/kernels.gen.cc" cc)
# b once, before a that needs it, then the kernel with its line numbers unchanged.
expect("${cc}" "const Source kNormSoftMax{\"norm/soft_max.cl\",
R\"cl(#line 1 \"common/b.clh\"
int b; // [x;y] \\ kept
#line 1 \"common/a.clh\"

int a;
#line 1 \"norm/soft_max.cl\"
// head


__kernel void k() {}
)cl\"
};")
# A long file comes back whole when its literals are joined, none of them over the limit.
string(REGEX REPLACE ".*kPoolLong{\"pool/long.cl\",\n" "" tail "${cc}")
string(REPLACE ")cl\"\nR\"cl(" "" tail "${tail}")
expect("${tail}" "R\"cl(#line 1 \"pool/long.cl\"\n${long})cl\"\n};")
string(REGEX MATCHALL "R\"cl\\(" literals "${cc}")
list(LENGTH literals count)
if(NOT count EQUAL 5)
  message(FATAL_ERROR "expected 1 + 4 literals, found ${count}")
endif()

# Nothing is written when nothing changed.
file(TIMESTAMP "${WORK}/out/kernels.gen.h" before "%s" UTC)
execute_process(COMMAND ${CMAKE_COMMAND} -E sleep 1.1)
embed("${WORK}/k" result)
file(TIMESTAMP "${WORK}/out/kernels.gen.h" after "%s" UTC)
if(NOT before EQUAL after)
  message(FATAL_ERROR "an unchanged header was written again")
endif()

foreach(bad IN ITEMS
    "missing.cl;#include \"common/none.clh\";does not exist"
    "outside.cl;#include \"../x.h\";may include only"
    "Big.cl;int x\;;snake_case")
  list(GET bad 0 name)
  list(GET bad 1 text)
  list(GET bad 2 message)
  file(REMOVE_RECURSE "${WORK}/bad")
  file(WRITE "${WORK}/bad/norm/${name}" "${text}\n")
  embed("${WORK}/bad" result)
  expect("${result}" "${message}")
endforeach()
