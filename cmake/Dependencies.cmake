# Every library comes from the distribution; packaging/debian/control lists them.
find_package(Threads REQUIRED)

# baton_library(NAME HEADER LIBRARY...): Library::NAME, which must be installed. What every build needs
# is found without pkg-config: a machine that only builds the program does without it.
function(baton_library name header)
    find_path(${name}_HEADERS ${header} REQUIRED)
    set(files)
    foreach(library ${ARGN})
        find_library(${name}_${library} ${library} REQUIRED)
        list(APPEND files ${${name}_${library}})
    endforeach()
    add_library(Library::${name} INTERFACE IMPORTED GLOBAL)
    set_target_properties(Library::${name} PROPERTIES INTERFACE_LINK_LIBRARIES "${files}"
                                                      INTERFACE_INCLUDE_DIRECTORIES
                                                      ${${name}_HEADERS})
endfunction()

baton_library(UV uv.h uv)
baton_library(OPENSSL openssl/ssl.h ssl crypto)
baton_library(JANSSON jansson.h jansson)
baton_library(FYAML libfyaml.h fyaml)
baton_library(HTTP_PARSER http_parser.h http_parser)
if(baton IN_LIST BATON_WINGS)
    baton_library(SQLITE sqlite3.h sqlite3)
    baton_library(HIREDIS hiredis/hiredis.h hiredis)
endif()
if(fleet IN_LIST BATON_WINGS)
    baton_library(MOSQUITTO mosquitto.h mosquitto)
endif()

# The rest is found by pkg-config: what the tests, the benchmarks and the detector need beyond that.
if(detector IN_LIST BATON_WINGS OR BATON_TESTS STREQUAL "ON")
    find_package(PkgConfig REQUIRED)
else()
    find_package(PkgConfig QUIET)
endif()
if(PKG_CONFIG_FOUND)
    pkg_check_modules(CMOCKA QUIET IMPORTED_TARGET cmocka)
endif()
if(BATON_TESTS AND NOT CMOCKA_FOUND)
    if(NOT BATON_TESTS STREQUAL "AUTO")
        message(FATAL_ERROR "the tests need cmocka (libcmocka-dev)")
    endif()
    message(STATUS "the tests are left out: cmocka is missing (libcmocka-dev)")
    set(BATON_TESTS OFF)
endif()
