/* Output for people: tables whose columns fit. */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include <jansson.h>
#include <stdio.h>

enum { PRINT_COLUMNS_MAX = 12 };

/* Rows of cells, NULL ending each row and an empty row (a lone NULL) ending the table. Columns are
 * as wide as their widest cell in characters of UTF-8; control characters come out as '?'. */
void print_table(FILE *file, const char *const *cells);

/* Draws a progress bar in its line, `share` (0 to 1) of it full; only on a terminal. `what` NULL:
 * removes the bar. */
void print_progress(FILE *file, const char *what, double share);

/* Prints JSON with sorted keys: indented on a terminal, else compact in one line. */
void print_json(FILE *file, const json_t *json);

#endif
