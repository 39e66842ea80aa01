# Warnings are errors in every build of ours; sanitizers and coverage are build-wide too.
add_library(baton_flags INTERFACE)
target_compile_options(baton_flags INTERFACE
    -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wpointer-arith -Wvla -Wformat=2 -Wundef -Werror
    -fno-strict-aliasing -fvisibility=hidden)
target_compile_definitions(baton_flags INTERFACE _GNU_SOURCE)

if(BATON_SANITIZE)
    add_compile_options(-fsanitize=${BATON_SANITIZE} -fno-omit-frame-pointer
                        -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${BATON_SANITIZE})
endif()
if(BATON_COVERAGE)
    add_compile_options(--coverage -O0)
    add_link_options(--coverage)
endif()
