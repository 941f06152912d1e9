# The libraries as users get them: liboncilla.so with one version node, liboncilla.a, the headers, a
# CMake package, a pkg-config file, the documentation and a Debian package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Headers where consumers of the build tree find them as <oncilla/oncilla.h>.
set(ONCILLA_INCLUDE ${PROJECT_BINARY_DIR}/include)
set(ONCILLA_HEADERS oncilla.h oncilla.hpp oncilla_graph.h oncilla_graph.hpp oncilla_opencl.h oncilla_opencl.hpp
  oncilla_precision.h oncilla_precision.hpp oncilla_runs.h oncilla_runs.hpp oncilla_runtime.hpp
  oncilla_sequence.h oncilla_tensor.hpp)
foreach(header ${ONCILLA_HEADERS})
  configure_file(engine/api/${header} ${ONCILLA_INCLUDE}/oncilla/${header} COPYONLY)
endforeach()

get_target_property(ONCILLA_LIBRARIES oncilla_objects LINK_LIBRARIES)
get_target_property(ONCILLA_DEFINITIONS oncilla_objects INTERFACE_COMPILE_DEFINITIONS)

# Libraries that others in the process may have in another version, and whose names do not tell the
# version, are inside the shared library where the system has their archives, with every name hidden.
# Abseil's names tell it. Highway has no archive in Debian; those of RE2, libpng and libjpeg are made for
# programs, not for shared libraries. RE2 is in a module beside the library (backends/cpu/text/patterns.h).
set(ONCILLA_SHARED_LIBRARIES)
foreach(library ${ONCILLA_LIBRARIES})
  set(archive)
  if(library STREQUAL re2)
    continue()
  endif()
  if(library MATCHES "^(Snappy::snappy|farmhash)$")
    string(REGEX REPLACE ".*::" "" name ${library})
    find_library(ONCILLA_ARCHIVE_OF_${name} lib${name}.a)
    mark_as_advanced(ONCILLA_ARCHIVE_OF_${name})
    set(archive ${ONCILLA_ARCHIVE_OF_${name}})
  endif()
  if(archive)
    list(APPEND ONCILLA_SHARED_LIBRARIES ${archive})
  else()
    list(APPEND ONCILLA_SHARED_LIBRARIES ${library})
  endif()
endforeach()
# Libraries lack nothing, but for the runtime of a sanitizer, which is in programs alone.
set(ONCILLA_NO_UNDEFINED -Wl,--no-undefined)
if(ONCILLA_SANITIZE)
  set(ONCILLA_NO_UNDEFINED)
endif()
add_library(oncilla_shared SHARED $<TARGET_OBJECTS:oncilla_objects> ${ONCILLA_PATTERNS_LOADED})
target_compile_options(oncilla_shared PRIVATE ${ONCILLA_WARNINGS})
target_include_directories(oncilla_shared PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(oncilla_shared PRIVATE ONCILLA_PATTERN_MODULE="$<TARGET_FILE_NAME:oncilla_patterns>")
target_link_options(oncilla_patterns PRIVATE
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/engine/api/oncilla.map ${ONCILLA_NO_UNDEFINED})
add_dependencies(oncilla_shared oncilla_patterns)
add_library(oncilla::oncilla ALIAS oncilla_shared)
target_link_libraries(oncilla_shared PRIVATE ${ONCILLA_SHARED_LIBRARIES})
target_link_options(oncilla_shared PRIVATE -Wl,--exclude-libs,ALL
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/engine/api/oncilla.map ${ONCILLA_NO_UNDEFINED})
set_target_properties(oncilla_shared PROPERTIES
  OUTPUT_NAME oncilla EXPORT_NAME oncilla VERSION ${PROJECT_VERSION} SOVERSION 0
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/engine/api/oncilla.map)

# The same objects as an archive; our tests and the program link this one and see inside.
add_library(oncilla_core STATIC $<TARGET_OBJECTS:oncilla_objects>
  ${ONCILLA_PATTERNS_LINKED})
target_compile_options(oncilla_core PRIVATE ${ONCILLA_WARNINGS})
add_library(oncilla::oncilla_static ALIAS oncilla_core)
target_link_libraries(oncilla_core PUBLIC ${ONCILLA_LIBRARIES})
target_include_directories(oncilla_core PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>)
if(ONCILLA_DEFINITIONS)
  target_compile_definitions(oncilla_core PUBLIC $<BUILD_INTERFACE:${ONCILLA_DEFINITIONS}>)
endif()
set_target_properties(oncilla_core PROPERTIES OUTPUT_NAME oncilla EXPORT_NAME oncilla_static)

foreach(target oncilla_shared oncilla_core)
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${ONCILLA_INCLUDE}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} INTERFACE cxx_std_17)
endforeach()

# Inside another project the rest is that project's business.
if(NOT ONCILLA_INSTALL)
  return()
endif()
# Two exports: who links the shared library needs none of the packages that the archive needs.
install(TARGETS oncilla_shared EXPORT oncilla)
install(TARGETS oncilla_patterns LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS oncilla_core EXPORT oncilla_static)
list(TRANSFORM ONCILLA_HEADERS PREPEND engine/api/ OUTPUT_VARIABLE ONCILLA_HEADER_FILES)
install(FILES ${ONCILLA_HEADER_FILES} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/oncilla)
install(FILES LICENSE NOTICE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/oncilla)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/oncilla)
install(DIRECTORY tools/oncilla/schema DESTINATION ${CMAKE_INSTALL_DATADIR}/oncilla)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/oncilla)
install(EXPORT oncilla NAMESPACE oncilla:: DESTINATION ${package} FILE oncillaTargets.cmake)
install(EXPORT oncilla_static NAMESPACE oncilla:: DESTINATION ${package}
  FILE oncillaStaticTargets.cmake)
configure_package_config_file(engine/api/oncillaConfig.cmake.in oncillaConfig.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(oncillaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/oncillaConfig.cmake
  ${PROJECT_BINARY_DIR}/oncillaConfigVersion.cmake DESTINATION ${package})
# What the archive needs, for `pkg-config --static`: CMake's targets by the names of their .pc files,
# plain libraries as they are. Written out as libraries, since packages required there would have to
# be installed for those too who link the shared library.
set(ONCILLA_PC_REQUIRES)
set(ONCILLA_PC_LIBS)
foreach(library ${ONCILLA_LIBRARIES})
  if(library MATCHES "^::@")  # CMake's mark of the folder that added what follows
    continue()
  elseif(library MATCHES "^absl::(.*)")
    list(APPEND ONCILLA_PC_REQUIRES absl_${CMAKE_MATCH_1})
  elseif(library MATCHES "^(hwy::hwy|Snappy::snappy|PNG::PNG|JPEG::JPEG|ZLIB::ZLIB)$")
    string(REGEX REPLACE ".*::" "" name ${library})
    string(TOLOWER ${name} name)
    string(REGEX REPLACE "^(hwy|png|jpeg)$" "lib\\1" name ${name})
    list(APPEND ONCILLA_PC_REQUIRES ${name})
  elseif(library STREQUAL Threads::Threads)
    list(APPEND ONCILLA_PC_LIBS ${CMAKE_THREAD_LIBS_INIT})
  elseif(library MATCHES "::|\\$<")
    message(FATAL_ERROR "oncilla.pc does not know the name of ${library}")
  else()
    list(APPEND ONCILLA_PC_LIBS -l${library})
  endif()
endforeach()
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --libs ${ONCILLA_PC_REQUIRES}
    OUTPUT_VARIABLE libs OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(failed)
    message(STATUS "oncilla.pc does not list what the archive needs: some library has no .pc file")
  endif()
  list(PREPEND ONCILLA_PC_LIBS ${libs})
endif()
list(APPEND ONCILLA_PC_LIBS -lstdc++ -lm)
list(JOIN ONCILLA_PC_LIBS " " ONCILLA_PC_LIBS)
# The prefix follows from where the file lies, so that an installation may be moved.
file(RELATIVE_PATH ONCILLA_PC_UP "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" ONCILLA_PC_UP "${ONCILLA_PC_UP}")
configure_file(engine/api/oncilla.pc.in oncilla.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/oncilla.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME oncilla)
set(CPACK_PACKAGE_VENDOR "The Oncilla authors")
set(CPACK_PACKAGE_CONTACT "The Oncilla authors <oncilla@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Portable inference engine for OpenCL and the CPU")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_STRIP_FILES ON)
include(CPack)
