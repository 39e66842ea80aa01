#include "cli/print.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text; text++) {
        width += ((unsigned char)*text & 0xC0) != 0x80; /* a continuation byte adds nothing */
    }
    return width;
}

static void print_cell(FILE *file, const char *text, size_t width)
{
    size_t used = width_of(text);
    for (const char *at = text; *at; at++) {
        (void)fputc(iscntrl((unsigned char)*at) ? '?' : *at, file);
    }
    for (; used < width; used++) {
        (void)fputc(' ', file);
    }
}

void print_table(FILE *file, const char *const *cells)
{
    size_t widths[PRINT_COLUMNS_MAX] = {0};
    for (const char *const *row = cells; *row; row++) {
        for (size_t i = 0; *row && i < PRINT_COLUMNS_MAX; row++, i++) {
            size_t width = width_of(*row);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    for (const char *const *row = cells; *row; row++) {
        for (size_t i = 0; *row && i < PRINT_COLUMNS_MAX; row++, i++) {
            print_cell(file, *row, row[1] ? widths[i] + 2 : 0);
        }
        (void)fputc('\n', file);
    }
}

void print_progress(FILE *file, const char *what, double share)
{
    static const char full[] = "########################################";
    int width = (int)sizeof(full) - 1;
    int done = share > 1 ? width : share > 0 ? (int)(share * width) : 0;
    if (!isatty(fileno(file))) {
        return;
    }
    if (what) {
        (void)fprintf(file, "\r[%.*s%*s] %3.0f %%  %-32s", done, full, width - done, "",
                      100.0 * done / width, what);
    } else {
        (void)fprintf(file, "\r%*s\r", width + 44, "");
    }
    (void)fflush(file);
}

void print_json(FILE *file, const json_t *json)
{
    size_t flags = JSON_SORT_KEYS | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9);
    flags |= isatty(fileno(file)) ? JSON_INDENT(2) : JSON_COMPACT;
    (void)json_dumpf(json, file, flags);
    (void)fputc('\n', file);
}
