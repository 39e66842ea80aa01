/* Short macros for a table of options. Only for files that hold one. */
#ifndef OPTIONS_SPEC_H
#define OPTIONS_SPEC_H

#include "options/option.h"

#define FLAG(n, h)                                                                                 \
    {                                                                                              \
        .name = (n), .type = OPTION_FLAG, .help = (h)                                              \
    }
#define TEXT(n, v, i, k, h)                                                                        \
    {                                                                                              \
        .name = (n), .type = OPTION_TEXT, .value = (v), .initial = (i), .provider_key = (k),       \
        .help = (h)                                                                                \
    }
#define ADDRESS(n, i, k, h)                                                                        \
    {                                                                                              \
        .name = (n), .type = OPTION_ADDRESS, .value = "HOST:PORT", .initial = (i),                 \
        .provider_key = (k), .help = (h)                                                           \
    }
#define NUMBER(n, lo, hi, i, k, h)                                                                 \
    {                                                                                              \
        .name = (n), .type = OPTION_NUMBER, .value = "N", .initial = (i), .min = (lo),             \
        .max = (hi), .provider_key = (k), .help = (h)                                              \
    }
#define DURATION(n, i, k, h)                                                                       \
    {                                                                                              \
        .name = (n), .type = OPTION_DURATION, .value = "TIME", .initial = (i),                     \
        .provider_key = (k), .help = (h)                                                           \
    }
#define CHOICE(n, c, i, k, h)                                                                      \
    {                                                                                              \
        .name = (n), .type = OPTION_CHOICE, .value = (c), .choices = (c), .initial = (i),          \
        .provider_key = (k), .help = (h)                                                           \
    }
#define HIDDEN_TEXT(n, h)                                                                          \
    {                                                                                              \
        .name = (n), .type = OPTION_TEXT, .value = "V", .help = (h), .is_hidden = true             \
    }
#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }

#endif
