# baton_layer(NAME DEPENDS ... LIBRARIES ... SOURCES ...)
#
# One folder of src/, and one of a wing beside it (detector/), is one layer: a static library that may
# include the headers of the layers it DEPENDS on (and theirs). tests/house checks that no include
# points up.
function(baton_layer name)
    cmake_parse_arguments(L "" "" "DEPENDS;LIBRARIES;SOURCES" ${ARGN})
    add_library(baton_${name} STATIC ${L_SOURCES})
    target_include_directories(baton_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                                    ${PROJECT_SOURCE_DIR}/src
                                                    ${PROJECT_SOURCE_DIR})
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
    set_tests_properties(${name} PROPERTIES LABELS "${T_LABELS}")
endfunction()

# baton_takes(SECONDS SLOTS TEST...): for tests that are longer than a few seconds. The longest are
# begun first, so that none is left alone at the end; and as most tests wait for timeouts and leases
# more than they compute, scripts/check runs two to seven to a core: SLOTS is how many of these a
# test fills, about four times the cores that it keeps busy, and one if that is a third of a core.
function(baton_takes seconds slots)
    foreach(test ${ARGN})
        if(TEST ${test})
            set_tests_properties(${test} PROPERTIES COST ${seconds} PROCESSORS ${slots})
        endif()
    endforeach()
endfunction()
