# Warnings of GCC are errors; sanitizers, coverage and the linker are build-wide
# too. That snprintf may cut a text short is why it is used, not a fault; and a result that a (void)
# leaves aside is left aside on purpose, which GCC does not see.
add_library(baton_flags INTERFACE)
target_compile_options(baton_flags INTERFACE
    -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wpointer-arith -Wvla -Wformat=2 -Wundef -Werror
    -fno-strict-aliasing -fvisibility=hidden
    # cmocka gives each test a state that few use, and a stand-in takes more than it needs.
    $<$<STREQUAL:$<TARGET_PROPERTY:FOLDER>,tests>:-Wno-unused-parameter>)
if(CMAKE_C_COMPILER_ID STREQUAL GNU)
    target_compile_options(baton_flags INTERFACE -Wno-format-truncation -Wno-unused-result)
else()
    # Other compilers warn of more, by the same names; that must stop nobody's build.
    target_compile_options(baton_flags INTERFACE -Wno-error)
endif()
# Out of memory, uthash leaves an element without a table instead of ending the process.
target_compile_definitions(baton_flags INTERFACE _GNU_SOURCE HASH_NONFATAL_OOM=1)

if(BATON_SANITIZE OR BATON_COVERAGE)
    # Instrumented code makes the compiler see overlaps and overruns that are not there; the dev and
    # release builds keep every warning an error.
    target_compile_options(baton_flags INTERFACE -Wno-error)
endif()
if(BATON_SANITIZE)
    add_compile_options(-fsanitize=${BATON_SANITIZE} -fno-omit-frame-pointer
                        -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${BATON_SANITIZE})
endif()
if(BATON_LINKER)
    # Each build that tests links more than a hundred programs: 0.17 s of a core each with GNU's
    # linker, a tenth of that with mold.
    # Before its version 2.4, mold may begin what becomes read-only with a .tbss that lies before the
    # first page of its segment, and such a program does not start ("cannot apply additional memory
    # protection after relocation"). Segments that begin at pages keep it from that.
    find_program(BATON_LINKER_PROGRAM ${BATON_LINKER})
    if(BATON_LINKER_PROGRAM)
        add_link_options(-fuse-ld=${BATON_LINKER} -Wl,-z,separate-code)
    endif()
endif()
if(BATON_COVERAGE)
    add_compile_options(--coverage -O0)
    add_link_options(--coverage)
endif()
if(BATON_FUZZ)
    # Every layer tells the fuzzer which of its branches an input reached.
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# What Debian's hardening=+all asks for; tests/house/hardening.py reads it in the programs. Fortified
# calls need an optimizer, and a sanitizer checks the same better.
include(CheckCCompilerFlag)
include(CheckPIESupported)
check_pie_supported()
check_c_compiler_flag(-fcf-protection BATON_HAS_CF_PROTECTION) # of some processors only
add_compile_options(-fstack-protector-strong -fstack-clash-protection
                    $<$<BOOL:${BATON_HAS_CF_PROTECTION}>:-fcf-protection>)
add_link_options(-Wl,-z,relro -Wl,-z,now)
if(NOT BATON_SANITIZE AND NOT BATON_COVERAGE AND
   (NOT CMAKE_BUILD_TYPE STREQUAL Debug OR CMAKE_C_FLAGS MATCHES "-O[1-3s]"))
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
