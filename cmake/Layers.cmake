# baton_layer(NAME DEPENDS ... LIBRARIES ... SOURCES ...)
#
# One folder of src/ is one layer: an object library that may include the headers of the layers it
# DEPENDS on (and theirs). tests/house checks that no include points up.
function(baton_layer name)
    cmake_parse_arguments(L "" "" "DEPENDS;LIBRARIES;SOURCES" ${ARGN})
    add_library(baton_${name} STATIC ${L_SOURCES})
    target_include_directories(baton_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                                    ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(baton_${name} PRIVATE baton_flags)
    foreach(dependency ${L_DEPENDS})
        target_link_libraries(baton_${name} PUBLIC baton_${dependency})
    endforeach()
    target_link_libraries(baton_${name} PUBLIC ${L_LIBRARIES})
endfunction()

# baton_test(NAME SOURCES ... LAYERS ... [LABELS ...]): one cmocka program, one ctest entry.
function(baton_test name)
    cmake_parse_arguments(T "" "" "SOURCES;LAYERS;LABELS;LIBRARIES" ${ARGN})
    add_executable(${name} ${T_SOURCES})
    target_link_libraries(${name} PRIVATE baton_flags PkgConfig::CMOCKA ${T_LIBRARIES})
    foreach(layer ${T_LAYERS})
        target_link_libraries(${name} PRIVATE baton_${layer})
    endforeach()
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 120 LABELS "${T_LABELS}")
endfunction()
