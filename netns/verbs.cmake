# libibverbs with its providers, from Debian's static archives: railctl runs in containers and on
# hosts whose libraries are unknown, and a provider that is loaded at run time is one more of them.
# Which provider serves a device is decided at run time as ever; RDMA_STATIC_PROVIDERS says which
# are there (see <infiniband/verbs.h>). NICs that do RoCE, and soft RoCE.
find_path(IBVERBS_INCLUDE infiniband/verbs.h REQUIRED)
set(verbs_archives)
set(verbs_providers bnxt_re erdma hns irdma mana mlx4 mlx5 ocrdma qedr rxe)
foreach(name ${verbs_providers} ibverbs nl-route-3 nl-3)
  # A provider that has calls of its own is a library like others; 34 is the ABI of those that have none.
  find_library(ARCHIVE_${name} NAMES lib${name}.a lib${name}-rdmav34.a REQUIRED)
  list(APPEND verbs_archives ${ARCHIVE_${name}})
endforeach()
list(JOIN verbs_archives "," verbs_group)
list(JOIN verbs_providers "," verbs_names)
add_library(railhead_ibverbs INTERFACE)
target_include_directories(railhead_ibverbs SYSTEM INTERFACE ${IBVERBS_INCLUDE})
target_compile_definitions(railhead_ibverbs INTERFACE
  RDMA_STATIC_PROVIDERS=${verbs_names})
# Not by linker options of its own, which CMake would take for those of another group.
target_link_libraries(railhead_ibverbs INTERFACE "$<LINK_GROUP:RESCAN,${verbs_group}>" Threads::Threads)
