# `cmake --install build/release`, and packages of it: `cpack --config build/release/CPackConfig.cmake`.
#
#   /usr/bin                    railheadd, railctl
#   /usr/libexec/railhead       railhead-nvml, which railheadd runs
#   RAILHEAD_CNI_DIR            railhead, railhead-ipam (/opt/cni/bin, where container runtimes look; Debian's
#                               own containerd looks into /usr/lib/cni)
#   /usr/lib/systemd/system     railheadd.service
#   /usr/lib/tmpfiles.d         the directories that the unit writes to
#   /usr/share/man/man8, completions of bash, zsh and fish, /usr/share/doc/railhead
# Programs are installed as they are built; pages and completions are made of them (generate.cmake).
#
# Target programs: all that is installed, which the images hold, too. With tests also what the demo runs beside it.
set(RAILHEAD_CNI_DIR /opt/cni/bin CACHE STRING "Where the CNI plugins are installed")
set(RAILHEAD_UNIT_DIR lib/systemd/system CACHE STRING "Where the systemd unit is installed")
set(package_dir ${CMAKE_CURRENT_LIST_DIR})

add_custom_target(programs)
set(RAILHEAD_PROGRAMS "" CACHE INTERNAL "The installed programs")
# railhead_install(DIRECTORY PROGRAM...): nothing else installs a program, so that no list can forget one.
function(railhead_install directory)
  install(TARGETS ${ARGN} RUNTIME DESTINATION ${directory})
  add_dependencies(programs ${ARGN})
  set(RAILHEAD_PROGRAMS ${RAILHEAD_PROGRAMS} ${ARGN} CACHE INTERNAL "The installed programs")
endfunction()
railhead_install(bin railheadd railctl)
railhead_install(libexec/railhead railhead-nvml)
railhead_install(${RAILHEAD_CNI_DIR} railhead railhead-ipam)
install(FILES ${CMAKE_SOURCE_DIR}/manifests/railheadd.service DESTINATION ${RAILHEAD_UNIT_DIR})
install(FILES ${package_dir}/railhead.tmpfiles DESTINATION lib/tmpfiles.d RENAME railhead.conf)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION share/doc/railhead RENAME copyright)
install(FILES ${CMAKE_SOURCE_DIR}/manifests/base/fabric.json DESTINATION share/doc/railhead/examples)
# Of a cross build: programs of the same commit that run here, which print the pages.
set(RAILHEAD_NATIVE_BIN ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} CACHE PATH "Directory of programs that run on this machine")
install(CODE "set(RAILHEAD_BIN \"${RAILHEAD_NATIVE_BIN}\")")
install(SCRIPT ${package_dir}/generate.cmake)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME railhead)
set(CPACK_PACKAGE_VENDOR Railhead)
set(CPACK_PACKAGE_CONTACT "The Railhead authors <railhead@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "SR-IOV RoCE networking for GPU pods")
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)  # RAILHEAD_CNI_DIR is absolute
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
if(CMAKE_CROSSCOMPILING)
  # dpkg-shlibdeps asks this machine's packages. railhead-nvml alone is dynamic; its symbols are of this version.
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.34)")
  set(CPACK_RPM_PACKAGE_ARCHITECTURE aarch64)
else()
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "kmod, rdma-core")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    " railheadd gives the VFs of RoCE NICs to kubelet, the CNI plugins railhead and railhead-ipam move them into\n pods with addresses of the rails' subnets, and tell NCCL which devices and GIDs to use.")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${package_dir}/postinst ${package_dir}/prerm ${package_dir}/postrm)

# Reproducible with SOURCE_DATE_EPOCH. The programs are stripped, and their debug information is not packed.
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_COMPRESSION_TYPE zstd)
set(CPACK_RPM_PACKAGE_DESCRIPTION ${CPACK_PACKAGE_DESCRIPTION_SUMMARY})
set(CPACK_RPM_POST_INSTALL_SCRIPT_FILE ${package_dir}/rpm/post)
set(CPACK_RPM_PRE_UNINSTALL_SCRIPT_FILE ${package_dir}/rpm/preun)
set(CPACK_RPM_POST_UNINSTALL_SCRIPT_FILE ${package_dir}/rpm/postun)
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
    /opt /opt/cni /opt/cni/bin /usr/lib/systemd /usr/lib/systemd/system /usr/lib/tmpfiles.d /usr/libexec
    /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/fish
    /usr/share/fish/vendor_completions.d /usr/share/zsh /usr/share/zsh/vendor-completions /usr/share/man /usr/share/man/man8)
set(CPACK_RPM_SPEC_MORE_DEFINE
    "%define __os_install_post %{nil}\n%define debug_package %{nil}\n%define _buildhost localhost\n%define use_source_date_epoch_as_buildtime 1\n%define clamp_mtime_to_source_date_epoch 1\n%define _build_id_links none")
include(CPack)
