/* Files of /proc and /sys, which are short, and the numbers in them. */
#ifndef DETECTOR_PROC_FILE_H
#define DETECTOR_PROC_FILE_H

#include <stdbool.h>
#include <stdint.h>

enum { PROC_FILE_MAX = 16384, PROC_PATH_MAX = 1088 };

/* The file's text, cut at PROC_FILE_MAX; false if it cannot be read. */
bool proc_read(const char *path, char text[static PROC_FILE_MAX]);

/* A number at the text's beginning; false for "max", -1 and all else that is none. */
bool proc_number(const char *text, uint64_t *ret);

/* The number behind `key` and blanks at the beginning of a line. */
bool proc_number_after(const char *text, const char *key, uint64_t *ret);

#endif
