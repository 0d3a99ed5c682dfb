# gRPC and protobuf, linked from Debian's static archives.
#
# railheadd runs in containers and on hosts whose libraries are unknown. The
# archives without TLS: everything goes over unix sockets. Debian's CMake packages
# know the shared libraries only, so the archives are named here.
find_program(PROTOC protoc REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

set(archives)
foreach(name grpc++_unsecure grpc_unsecure gpr address_sorting upb cares re2 z protobuf-lite)
  find_library(ARCHIVE_${name} lib${name}.a REQUIRED)
  list(APPEND archives ${ARCHIVE_${name}})
endforeach()
# Abseil comes in a hundred archives that need each other in many ways.
get_filename_component(archive_directory ${ARCHIVE_gpr} DIRECTORY)
file(GLOB absl_archives ${archive_directory}/libabsl_*.a)

# Names of hosts, without the C library's resolver: also for programs without gRPC.
find_path(CARES_INCLUDE ares.h REQUIRED)
add_library(railhead_cares INTERFACE)
target_include_directories(railhead_cares SYSTEM INTERFACE ${CARES_INCLUDE})
target_link_libraries(railhead_cares INTERFACE ${ARCHIVE_cares})

add_library(railhead_grpc INTERFACE)
target_link_libraries(railhead_grpc INTERFACE
  -Wl,--start-group ${archives} ${absl_archives} -Wl,--end-group
  Threads::Threads ${CMAKE_DL_LIBS})

# libstdc++ and libgcc too: a container image may be older than the compiler.
add_library(railhead_only_glibc INTERFACE)
if(NOT RAILHEAD_SANITIZE)
  target_link_options(railhead_only_glibc INTERFACE -static-libstdc++ -static-libgcc)
endif()

# railhead_grpc_library(NAME PROTO): messages and stubs of one .proto file. Not
# compiled with our flags: generated code is not ours to clean.
function(railhead_grpc_library name proto)
  get_filename_component(stem ${proto} NAME_WE)
  get_filename_component(proto_directory ${proto} DIRECTORY)
  set(stub ${CMAKE_CURRENT_BINARY_DIR}/${proto_directory}/${stem})
  set(generated ${stub}.pb.cc ${stub}.pb.h ${stub}.grpc.pb.cc ${stub}.grpc.pb.h)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${proto_directory})
  add_custom_command(
    OUTPUT ${generated}
    COMMAND ${PROTOC} --proto_path=${CMAKE_SOURCE_DIR} --cpp_out=${CMAKE_BINARY_DIR}
            --grpc_out=${CMAKE_BINARY_DIR} --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN}
            ${CMAKE_CURRENT_SOURCE_DIR}/${proto}
    DEPENDS ${proto} VERBATIM)
  add_library(${name} STATIC ${generated})
  target_include_directories(${name} SYSTEM PUBLIC ${CMAKE_BINARY_DIR})
  target_compile_options(${name} PRIVATE -w -fvisibility=hidden -ffunction-sections -fdata-sections)
  if(RAILHEAD_SANITIZE)
    target_compile_options(${name} PRIVATE -fsanitize=${RAILHEAD_SANITIZE} -fno-omit-frame-pointer)
  endif()
  target_link_libraries(${name} PUBLIC railhead_grpc)
endfunction()
