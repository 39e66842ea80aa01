/* How often a program was killed for a hang lately: a number in a file of its data directory. The
 * guardian counts, and the program's next process reads. Uses libc only.
 */
#ifndef GUARDIAN_TALLY_H
#define GUARDIAN_TALLY_H

/* The kills since there was an hour without one; 0 also if the file cannot be read or holds
 * anything else. `path` may be "". */
unsigned tally_read(const char *path);
/* Adds a kill. A failure is ignored: the next bound is then shorter than it should be. */
void tally_count(const char *path);

#endif
