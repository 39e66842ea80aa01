#include "sim/game.h"

#include <stdio.h>

void result_violate(struct result *result, const char *check, const char *format, va_list arguments)
{
    result->outcome = OUTCOME_VIOLATED;
    (void)snprintf(result->check, sizeof(result->check), "%s", check);
    (void)vsnprintf(result->detail, sizeof(result->detail), format, arguments);
}
