# What the client of the Kubernetes API speaks with: HTTP by Boost.Beast's parser (headers only) and TLS by
# OpenSSL's static archives. Debian's CMake packages know the shared libraries first, so the
# archives are named here.
find_path(BOOST_INCLUDE boost/beast/http/parser.hpp REQUIRED)
find_path(OPENSSL_INCLUDE openssl/ssl.h REQUIRED)
find_library(ARCHIVE_ssl libssl.a REQUIRED)
find_library(ARCHIVE_crypto libcrypto.a REQUIRED)
# What libcrypto.a needs itself: nothing in Debian 12, zstd in Debian 13.
pkg_check_modules(CRYPTO REQUIRED QUIET libcrypto)
set(crypto_archives)
foreach(name ${CRYPTO_STATIC_LIBRARIES})
  if(NOT name MATCHES "^(crypto|dl|pthread)$")
    find_library(ARCHIVE_${name} lib${name}.a REQUIRED)
    list(APPEND crypto_archives ${ARCHIVE_${name}})
  endif()
endforeach()
add_library(railhead_tls INTERFACE)
target_include_directories(railhead_tls SYSTEM INTERFACE ${BOOST_INCLUDE} ${OPENSSL_INCLUDE})
target_link_libraries(railhead_tls INTERFACE ${ARCHIVE_ssl} ${ARCHIVE_crypto} ${crypto_archives} Threads::Threads ${CMAKE_DL_LIBS})
# kubeconfig files and Kubernetes' objects are YAML.
find_path(YAML_INCLUDE yaml-cpp/yaml.h REQUIRED)
find_library(ARCHIVE_yaml libyaml-cpp.a REQUIRED)
add_library(railhead_yaml INTERFACE)
target_include_directories(railhead_yaml SYSTEM INTERFACE ${YAML_INCLUDE})
target_link_libraries(railhead_yaml INTERFACE ${ARCHIVE_yaml})
