# Messages compiled by protoc into the engine's objects: hidden like all of it, and without our
# warnings, since the code is not ours. Only the sources named here see what comes out.
find_package(Protobuf REQUIRED)
set(generated ${PROJECT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${generated}/proto)
foreach(name config oncilla tensorflow_config tensorflow_text)
  set(outputs ${generated}/proto/${name}.pb.cc ${generated}/proto/${name}.pb.h)
  add_custom_command(OUTPUT ${outputs}
    COMMAND protobuf::protoc --cpp_out=${generated} -I ${PROJECT_SOURCE_DIR} proto/${name}.proto
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    DEPENDS ${PROJECT_SOURCE_DIR}/proto/${name}.proto VERBATIM)
  target_sources(oncilla_objects PRIVATE ${outputs})
  set_source_files_properties(${outputs} PROPERTIES COMPILE_OPTIONS "-w;-isystem;${generated}")
endforeach()
foreach(source import/container_read import/container_source import/container_write import/tf_text
    session/config session/config_memory)
  set_source_files_properties(engine/${source}.cc TARGET_DIRECTORY oncilla_objects
    PROPERTIES COMPILE_OPTIONS "-isystem;${generated}")
endforeach()
target_link_libraries(oncilla_objects PUBLIC protobuf::libprotobuf)
