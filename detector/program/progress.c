#include "detector/program/progress.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR_CELLS = 20, TENTHS = 10 };

struct progress progress_of(FILE *file)
{
    return (struct progress){.file = file, .is_terminal = isatty(fileno(file)) == 1};
}

/* 0 to 1; below 0: unknown. */
static double share_of(const struct progress_state *state)
{
    double share = -1;

    if (state->duration.ns > 0) {
        share = (double)state->position.ns / (double)state->duration.ns;
        share = share < 0 ? 0 : share > 1 ? 1 : share;
    }
    return share;
}

static double seconds(span value)
{
    return (double)value.ns / 1e9;
}

static double rate_of(const struct progress_state *state)
{
    return state->spent.ns > 0 ? (double)state->frames / seconds(state->spent) : 0;
}

void progress_bar(char ret[PROGRESS_LINE_MAX], int columns, const struct progress_state *state)
{
    double share = share_of(state);
    int filled = (int)(share * BAR_CELLS);
    char cells[BAR_CELLS + 1] = "";

    for (int i = 0; i < BAR_CELLS; i++) {
        cells[i] = i < filled ? '#' : '-';
    }
    if (share < 0) {
        (void)snprintf(ret, PROGRESS_LINE_MAX, "%llu frames, %.0f a second, %llu detections",
                       (unsigned long long)state->frames, rate_of(state),
                       (unsigned long long)state->detections);
    } else {
        (void)snprintf(ret, PROGRESS_LINE_MAX,
                       "[%s] %3d %%  %.0f frames/s, %llu detections, %.0f s left", cells,
                       (int)(share * 100), rate_of(state), (unsigned long long)state->detections,
                       share > 0 ? seconds(state->spent) * (1 - share) / share : 0);
    }
    if (columns >= 0 && columns < PROGRESS_LINE_MAX) {
        ret[columns] = '\0';
    }
}

void progress_step(struct progress *progress, const struct progress_state *state)
{
    double share = share_of(state);
    /* The small addition is against rounding: a tenth of a clip is often a frame's start. */
    int tenths = (int)(share * TENTHS + 1e-6);

    if (progress->is_terminal) {
        return;
    }
    if (share < 0) {
        tenths = (int)(state->frames / PROGRESS_FRAMES);
    }
    if (tenths <= progress->printed || (share >= 0 && tenths == TENTHS)) {
        return; /* the end prints a line of its own */
    }
    progress->printed = tenths;
    if (share < 0) {
        (void)fprintf(progress->file, "%llu frames, %llu detections\n",
                      (unsigned long long)state->frames, (unsigned long long)state->detections);
    } else {
        (void)fprintf(progress->file, "%d %%: %llu frames, %llu detections\n",
                      tenths * (100 / TENTHS), (unsigned long long)state->frames,
                      (unsigned long long)state->detections);
    }
}

/* The last column stays empty: some terminals would wrap. */
static int columns_of(const struct progress *progress)
{
    struct winsize size;

    if (ioctl(fileno(progress->file), TIOCGWINSZ, &size) != 0 || size.ws_col < 2) {
        return PROGRESS_LINE_MAX - 1;
    }
    return size.ws_col < PROGRESS_LINE_MAX ? size.ws_col - 1 : PROGRESS_LINE_MAX - 1;
}

void progress_draw(struct progress *progress, const struct progress_state *state)
{
    char bar[PROGRESS_LINE_MAX];
    int columns = columns_of(progress);

    if (progress->is_terminal) {
        progress_bar(bar, columns, state);
        (void)fprintf(progress->file, "\r%-*s", columns, bar);
        (void)fflush(progress->file);
        progress->is_drawn = true;
    }
}

void progress_hide(struct progress *progress)
{
    if (progress->is_drawn) {
        (void)fprintf(progress->file, "\r%*s\r", columns_of(progress), "");
        (void)fflush(progress->file);
        progress->is_drawn = false;
    }
}
