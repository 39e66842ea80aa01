/* Output for people: tables whose columns fit. */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include <jansson.h>
#include <stdio.h>

enum { PRINT_COLUMNS_MAX = 12 };

/* Rows of cells, NULL ending each row and an empty row (a lone NULL) ending the table. Columns are
 * as wide as their widest cell in characters of UTF-8; control characters come out as '?'. */
void print_table(FILE *file, const char *const *cells);

/* A bar that moves in its line, `share` (0 to 1) of it full; only where a person looks at it. NULL
 * for what: takes it away. */
void print_progress(FILE *file, const char *what, double share);

/* One line of compact JSON with sorted keys, or several where a person looks at it. */
void print_json(FILE *file, const json_t *json);

#endif
