#include "cli/print.h"

#include "base/text.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR_MIN = 10 }; /* columns; a shorter one says nothing */

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
        size_t control = text_control(at);
        (void)fputc(control > 0 ? '?' : *at, file);
        at += control > 1;
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

static size_t columns_of(FILE *file)
{
    struct winsize size = {0};

    return ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* A line as wide as the terminal would go on in the next one, and stay there for ever: the text
 * comes before the bar, and the bar takes what is left. */
void print_progress(FILE *file, const char *what, double share)
{
    static const char full[] = "########################################";
    size_t columns, room, width = sizeof(full) - 1, done;
    char line[256] = "";

    if (!isatty(fileno(file))) {
        return;
    }
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    columns = columns_of(file) < sizeof(line) ? columns_of(file) : sizeof(line);
    room = what ? strlen(what) + sizeof("[] 100 %  ") : 0;
    width = columns < room + BAR_MIN ? 0 : columns - room < width ? columns - room : width;
    done = (size_t)(share * (double)width);
    if (what && width > 0) {
        (void)snprintf(line, columns, "[%.*s%*s] %3.0f %%  %s", (int)done, full,
                       (int)(width - done), "", 100 * share, what);
    } else if (what) {
        (void)snprintf(line, columns, "%3.0f %%  %s", 100 * share, what);
    }
    (void)fprintf(file, "\r%s\033[K", line);
    (void)fflush(file);
}

void print_json(FILE *file, const json_t *json)
{
    size_t flags = JSON_SORT_KEYS | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9);
    flags |= isatty(fileno(file)) ? JSON_INDENT(2) : JSON_COMPACT;
    (void)json_dumpf(json, file, flags);
    (void)fputc('\n', file);
}
