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
#define DURATION_OF(n, lo, hi, i, k, h)                                                            \
    {                                                                                              \
        .name = (n), .type = OPTION_DURATION, .value = "TIME", .initial = (i), .min = (lo),        \
        .max = (hi), .provider_key = (k), .help = (h)                                              \
    }
#define CHOICE(n, c, i, k, h)                                                                      \
    {                                                                                              \
        .name = (n), .type = OPTION_CHOICE, .value = (c), .choices = (c), .initial = (i),          \
        .provider_key = (k), .help = (h)                                                           \
    }
/* Those of a program.h program: `file` names the file of options, `anew` ends the help of the log's
 * level. */
#define PROGRAM_OPTIONS(file, anew)                                                                \
    {.name = "help", .letter = 'h', .type = OPTION_FLAG, .help = "print this help and exit"},      \
        CHOICE("help-format", "text|man|bash|zsh|fish", "text", NULL,                              \
               "format of the help: text, options of a manual page, or completions of a shell"),   \
        FLAG("version", "print the version and exit"),                                             \
        TEXT(file, "FILE", NULL, NULL,                                                             \
             "read options from this YAML file; its keys are the names of the flags"),             \
        CHOICE("log-level", "error|warning|notice|info|debug", "notice", NULL,                     \
               "how much to write to standard error" anew),                                        \
        FLAG("log-json", "write the log as lines of JSON")
#define HIDDEN_TEXT(n, h)                                                                          \
    {                                                                                              \
        .name = (n), .type = OPTION_TEXT, .value = "V", .help = (h), .is_hidden = true             \
    }
#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }

#endif
