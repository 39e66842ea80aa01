/* Macros for a table of settings. Include this only in a file that has one, which defines its
 * target:
 *
 *   #define TARGET struct client
 */
#ifndef PROVIDER_SETTING_ROWS_H
#define PROVIDER_SETTING_ROWS_H

#include "provider/setting.h"

#include <stddef.h>

#define TEXT(name, member)                                                                         \
    {                                                                                              \
        .key = (name), .kind = SETTING_TEXT, .offset = offsetof(TARGET, member),                   \
        .bytes = sizeof(((TARGET *)0)->member)                                                     \
    }
#define LIST(name, other, member)                                                                  \
    {                                                                                              \
        .key = (name), .alias = (other), .kind = SETTING_LIST, .offset = offsetof(TARGET, member), \
        .bytes = sizeof(((TARGET *)0)->member)                                                     \
    }
#define FLAG(name, member)                                                                         \
    {                                                                                              \
        .key = (name), .kind = SETTING_FLAG, .offset = offsetof(TARGET, member)                    \
    }
#define SPAN(name, member)                                                                         \
    {                                                                                              \
        .key = (name), .kind = SETTING_SPAN, .offset = offsetof(TARGET, member)                    \
    }
#define NUMBER(name, member, lo, hi)                                                               \
    {                                                                                              \
        .key = (name), .kind = SETTING_NUMBER, .offset = offsetof(TARGET, member), .min = (lo),    \
        .max = (hi)                                                                                \
    }
#define OWN(name, function)                                                                        \
    {                                                                                              \
        .key = (name), .kind = SETTING_OWN, .take = (function)                                     \
    }
#define END                                                                                        \
    {                                                                                              \
        .key = NULL                                                                                \
    }

#endif
