#include "cli/screen.h"

#include "cli/print.h"

#include <stdarg.h>
#include <string.h>

void screen_init(struct screen *screen, FILE *file, bool is_plain)
{
    *screen = (struct screen){.file = file, .is_plain = is_plain, .begun = clock_now()};
}

void screen_say(struct screen *screen, const char *format, ...)
{
    double since_s = (double)instant_since(clock_now(), screen->begun).ns / 1e9;
    char text[SCREEN_LINE_BYTES - 16];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (screen->is_plain) {
        (void)fprintf(screen->file, "%7.3f s  %s\n", since_s, text);
        (void)fflush(screen->file);
        return;
    }
    if (screen->line_count == SCREEN_LINES_MAX) {
        memmove(screen->lines[0], screen->lines[1],
                (SCREEN_LINES_MAX - 1) * sizeof(screen->lines[0]));
        screen->line_count--;
    }
    (void)snprintf(screen->lines[screen->line_count++], SCREEN_LINE_BYTES, "%7.3f s  %s", since_s,
                   text);
}

void screen_draw(struct screen *screen, const char *title, const char *const *cells)
{
    if (screen->is_plain) {
        return;
    }
    (void)fprintf(screen->file, "\033[H\033[J%s\n\n", title);
    print_table(screen->file, cells);
    (void)fputc('\n', screen->file);
    for (size_t i = 0; i < screen->line_count; i++) {
        (void)fprintf(screen->file, "%s\n", screen->lines[i]);
    }
    (void)fflush(screen->file);
}
